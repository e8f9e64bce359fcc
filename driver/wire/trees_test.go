package wire

import "testing"

// takeTrees passes the address of every register of trees of cards to take, and checks that each leads
// back to its port and job. TestNetworkAddresses then finds addresses that collide.
func takeTrees(t *testing.T, take func(addr uint32, name string)) {
	t.Helper()
	for _, r := range TreeRegisters {
		switch {
		case r.Addr == RegMemberRanks:
			for port := range MaxPorts {
				addr := RanksAddr(port)
				take(addr, r.Name)
				if p, ok := SplitRanksAddr(addr); !ok || p != port {
					t.Errorf("%s of port %d is read as that of port %d, %t", r.Name, port, p, ok)
				}
			}
		case r.Addr == RegJobRanks:
			for job := range MaxJobs {
				for port := range MaxPorts {
					addr := JobRanksAddr(job, port)
					take(addr, r.Name)
					if j, p, ok := SplitJobRanksAddr(addr); !ok || j != job || p != port {
						t.Errorf("%s of job %d, port %d is read as that of job %d, port %d, %t", r.Name, job, port, j, p, ok)
					}
				}
			}
		case r.PerJob():
			for job := range MaxJobs {
				take(JobAddr(r.Addr, job), r.Name)
			}
		default:
			take(r.Addr, r.Name)
		}
	}
	for i := range UpCounters {
		take(UpCounterAddr(i), "a counter of the up port")
	}
	// There is room for more counters on both sides.
	for addr := CounterAddr(0); addr < UpCounterBase; addr += 8 {
		if addr >= CounterAddr(len(Counters)+len(NetworkCounters)) {
			take(addr, "room for counters")
		}
	}
}

// No other address is read as MEMBER_RANKS or JOB_RANKS.
func TestSplitRanksAddr(t *testing.T) {
	ports, entries := 0, 0
	for addr := range RegJobRanks + RanksTableStride*MaxJobs + 64 {
		if port, ok := SplitRanksAddr(addr); ok {
			ports++
			if RanksAddr(port) != addr || port >= MaxPorts {
				t.Errorf("%#x is read as MEMBER_RANKS of port %d", addr, port)
			}
		}
		if job, port, ok := SplitJobRanksAddr(addr); ok {
			entries++
			if JobRanksAddr(job, port) != addr || port >= MaxPorts || job >= MaxJobs {
				t.Errorf("%#x is read as JOB_RANKS of job %d, port %d", addr, job, port)
			}
		}
	}
	if ports != MaxPorts || entries != MaxPorts*MaxJobs {
		t.Errorf("%d addresses of MEMBER_RANKS and %d of JOB_RANKS", ports, entries)
	}
}

// The registers' fields are where TREES.md has them.
func TestFieldsOfTreeRegisters(t *testing.T) {
	if got := Upward(0x12, 0xabcd); got != 0xabcd_1201 {
		t.Errorf("JOB_PARENT of rank 0x12, port 0xabcd is %#x", got)
	}
	value := UpRefusal(CodeBadEpoch, 0x89abcdef)
	if value != 0x89abcdef_00000013 {
		t.Errorf("JOB_UP_REFUSAL of bad_epoch for VID 0x89abcdef is %#x", value)
	}
	if code, vid := SplitUpRefusal(value); code != CodeBadEpoch || vid != 0x89abcdef {
		t.Errorf("it is read as %v of VID %#x", code, vid)
	}
}
