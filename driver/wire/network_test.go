package wire

import "testing"

// Registers of a network stand apart from all others, and each address leads back to its port and job.
func TestNetworkAddresses(t *testing.T) {
	taken := map[uint32]string{}
	take := func(addr uint32, name string) {
		t.Helper()
		if addr%8 != 0 {
			t.Errorf("%s is at %#x, no multiple of 8", name, addr)
		}
		if other, ok := taken[addr]; ok {
			t.Errorf("%s and %s are both at %#x", name, other, addr)
		}
		taken[addr] = name
	}
	for _, r := range Registers {
		for job := range MaxJobs {
			if r.PerJob() || job == 0 {
				take(JobAddr(r.Addr, job), r.Name)
			}
		}
	}
	for i := range len(Counters) + len(NetworkCounters) {
		take(CounterAddr(i), "a counter")
	}
	takeTrees(t, take)
	for job := range MaxJobs {
		for rank := range MaxPorts {
			for bucket := range LagBuckets {
				take(LagAddr(job, rank, bucket), "JOB_LAG")
			}
		}
	}
	for _, r := range NetworkRegisters {
		switch {
		case r.Addr >= RegJobAddress:
			for job := range MaxJobs {
				for port := range MaxPorts {
					addr := TableAddr(r.Addr, job, port)
					take(addr, r.Name)
					if of0, j, p, ok := SplitTableAddr(addr); !ok || of0 != r.Addr || j != job || p != port {
						t.Errorf("%s of job %d, port %d is read as %#x of job %d, port %d, %t", r.Name, job, port, of0, j, p, ok)
					}
				}
			}
		case r.Addr >= RegMemberAddress:
			for port := range MaxPorts {
				addr := MemberAddr(r.Addr, port)
				take(addr, r.Name)
				if of0, p, ok := SplitMemberAddr(addr); !ok || of0 != r.Addr || p != port {
					t.Errorf("%s of port %d is read as %#x of port %d, %t", r.Name, port, of0, p, ok)
				}
			}
		default:
			take(r.Addr, r.Name)
		}
	}
	for addr := range RegJobAddress + TableStride*MaxJobs + 64 {
		if of0, port, ok := SplitMemberAddr(addr); ok && MemberAddr(of0, port) != addr {
			t.Errorf("%#x is read as a MEMBER register", addr)
		}
		if of0, job, port, ok := SplitTableAddr(addr); ok && TableAddr(of0, job, port) != addr {
			t.Errorf("%#x is read as an entry of the table", addr)
		}
	}
}

// A datagram has a header, a payload and four bytes of CRC.
func TestDatagramBytes(t *testing.T) {
	for kind, want := range map[Kind]int{KindData: 118, KindAsk: 118, KindRegWrite: 126, KindResult: 134, KindStatus: 126} {
		if i, _ := kind.Info(); i.DatagramBytes(100) != want {
			t.Errorf("%s with 100 bytes of payload: %d bytes, want %d", kind, i.DatagramBytes(100), want)
		}
	}
}
