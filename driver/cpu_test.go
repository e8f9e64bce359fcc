package driver_test

// The card in software (the scheme cpu), which takes arrays without frames.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"tributary/driver"
	"tributary/driver/cpu"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// TestOnCPU runs the tests of the model card on the card in software: serve starts that one here.
// Tests that damage a link, or imitate a card, have nothing to test on it.
func TestOnCPU(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Reduce":                           TestReduce,
		"ReduceSpecialValues":              TestReduceSpecialValues,
		"VIDWraps":                         TestVIDWraps,
		"AllReduce":                        TestAllReduce,
		"InputErrors":                      TestInputErrors,
		"EveryFormat":                      TestEveryFormat,
		"TypedArrays":                      TestTypedArrays,
		"ByteArrayErrors":                  TestByteArrayErrors,
		"Exceptions":                       TestExceptions,
		"ConfigureBesideCounters":          TestConfigureBesideCounters,
		"ConfigureSideBySide":              TestConfigureSideBySide,
		"ResetBesideConfigure":             TestResetBesideConfigure,
		"DeadlineReportsMissingRanks":      TestDeadlineReportsMissingRanks,
		"LateMember":                       TestLateMember,
		"DeadMember":                       TestDeadMember,
		"RefusedCallHasNoPartials":         TestRefusedCallHasNoPartials,
		"Leaves":                           TestLeaves,
		"LastMemberLeaves":                 TestLastMemberLeaves,
		"EvictionsAddUp":                   TestEvictionsAddUp,
		"StallsAtRandom":                   TestStallsAtRandom,
		"DeadlineOfOneJobIsNotTheNextOnes": TestDeadlineOfOneJobIsNotTheNextOnes,
		"Lags":                             TestLags,
		"PartialInTime":                    TestPartialInTime,
		"MissingRank":                      TestMissingRank,
		"ShorterArray":                     TestShorterArray,
		"OtherLengthInOneChunk":            TestOtherLengthInOneChunk,
		"Cancel":                           TestCancel,
		"DeadlineNamesMissing":             TestDeadlineNamesMissing,
		"CloseAndAbort":                    TestCloseAndAbort,
		"JobsSideBySide":                   TestJobsSideBySide,
		"JobsHaveNumbersAndSlots":          TestJobsHaveNumbersAndSlots,
		"NoFreeSlots":                      TestNoFreeSlots,
		"ACardOfOneJobReplacesIt":          TestACardOfOneJobReplacesIt,
		"EndOfOneJobDoesNotAffectOthers":   TestEndOfOneJobDoesNotAffectOthers,
		"ConfigureStorm":                   TestConfigureStorm,
		"ExceptionsOfEachJob":              TestExceptionsOfEachJob,
		"Pending":                          TestPending,
		"PendingFails":                     TestPendingFails,
		"PendingLeaves":                    TestPendingLeaves,
		"Detach":                           TestDetach,
		"DetachInTheMiddle":                TestDetachInTheMiddle,
	} {
		t.Run(name, test)
	}
}

// TestCPUByName opens the card by name, with the model's options, and compares it with the model.
func TestCPUByName(t *testing.T) {
	for _, options := range []string{"", "sum=exact,result=fp32,format=bf16", "sum=max,format=fp8e4m3", "format=int32,saturate=true", "sum=fused,workers=3,lanes=4,chunk=20,window=2"} {
		t.Run(options, func(t *testing.T) {
			var sums [2][]byte
			for i, scheme := range []string{"model:", "cpu:"} {
				card, err := driver.Open(testContext(t), scheme+options, driver.WithWorkers(3))
				if err != nil {
					t.Fatal(err)
				}
				defer card.Close()
				job := configure(t, card, driver.JobConfig{Workers: 3})
				info := card.Info()
				n := 5*info.Chunk*info.Window + 7
				inputs := make([][]byte, 3)
				rng := rand.New(rand.NewPCG(3, 4))
				for w := range inputs {
					inputs[w] = make([]byte, n*element.Size(info.Format))
					for b := range inputs[w] {
						inputs[w][b] = byte(rng.Uint32())
					}
				}
				sums[i] = make([]byte, n*element.Size(info.Result))
				if err := job.ReduceBytes(testContext(t), sums[i], inputs); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(sums[0], sums[1]) {
				t.Error("the sums differ from the model's")
			}
		})
	}
}

// TestCPUMembers has members of several jobs hand over arrays at their own pace.
func TestCPUMembers(t *testing.T) {
	card, err := driver.Open(testContext(t), "cpu:workers=5,lanes=4,chunk=32,window=16,jobs=4")
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	var jobs sync.WaitGroup
	for n := range 4 {
		jobs.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			job := configure(t, card, driver.JobConfig{Workers: 5, FirstVID: rng.Uint32()})
			for round := range 60 {
				length := 1 + rng.IntN([]int{4, 33, 600, 6000}[rng.IntN(4)])
				in := arrays(uint64(round), 5, length)
				want := treeSum(in, firstPorts(5), 5)
				var members sync.WaitGroup
				for r := range in {
					pause := rng.IntN(3) * rng.IntN(200)
					members.Go(func() {
						for range pause {
							runtime.Gosched()
						}
						if err := job.Member(r).AllReduce(testContext(t), in[r]); err != nil {
							t.Error(err)
						}
					})
				}
				members.Wait()
				for r := range in {
					sameBits(t, fmt.Sprintf("job %d, round %d, rank %d", n, round, r), in[r], want)
				}
			}
			closes(t, job)
		})
	}
	jobs.Wait()
}

// TestCPUReleasesArrays checks that a call that was stopped uses its arrays no longer: the race
// detector sees the writes to them.
func TestCPUReleasesArrays(t *testing.T) {
	card, err := driver.Open(testContext(t), "cpu:workers=2")
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	stopped, between := 0, 0
	for i := range 20 {
		job := configure(t, card, driver.JobConfig{})
		in := [][]float32{make([]float32, 4<<20), make([]float32, 4<<20)}
		ctx, cancel := context.WithCancel(testContext(t))
		err := job.Reduce(ctx, in[0], in, driver.WithProgress(func(done, total int) {
			if done > 0 && done < total {
				between++
			}
			if done >= total*i/20 {
				cancel()
			}
		}))
		clear(in[0])
		clear(in[1])
		cancel()
		switch {
		case errors.Is(err, context.Canceled):
			stopped++
		case err != nil:
			t.Fatal(err)
		}
	}
	if stopped == 0 || between == 0 {
		t.Errorf("%d calls were stopped, %d reported progress", stopped, between)
	}
}

// TestCPUStats checks the counts of a member that comes after its chunks were summed without it. The
// card may have sent it results over the link by then, where no call takes them.
func TestCPUStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := driver.Open(testContext(t), "cpu:workers=3,lanes=4,chunk=16,window=4")
		if err != nil {
			t.Fatal(err)
		}
		defer card.Close()
		job := configure(t, card, driver.JobConfig{DeadlineCycles: soon, Partial: true})
		inputs := arrays(1, 3, 50)
		for _, ranks := range [][]int{{0, 1}, {2}} {
			_, errs := reduceAll(testContext(t), job, ranks, inputs)
			wantNil(t, errs, ranks...)
		}
		for rank, want := range []driver.MemberStats{{Sent: 4, Results: 4}, {Sent: 4, Results: 4}, {Results: 4}} {
			got := job.Member(rank).Stats()
			got.Duplicates = 0
			if got != want {
				t.Errorf("rank %d: %+v, want %+v", rank, got, want)
			}
		}
		closes(t, job)
	})
}

// TestCPUForgetsArrays checks that the driver and the card keep no array after a call. A call once
// kept its result until the next one.
func TestCPUForgetsArrays(t *testing.T) {
	card, err := driver.Open(testContext(t), "cpu:workers=2")
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	job := configure(t, card, driver.JobConfig{})
	var kept []weak.Pointer[float32]
	in := func() []float32 {
		array := make([]float32, 100_000)
		kept = append(kept, weak.Make(&array[0]))
		return array
	}
	if err := job.Reduce(testContext(t), in(), [][]float32{in(), in()}); err != nil {
		t.Fatal(err)
	}
	var members sync.WaitGroup
	for r := range 2 {
		array := in()
		members.Go(func() {
			if err := job.Member(r).AllReduce(testContext(t), array); err != nil {
				t.Error(err)
			}
		})
	}
	members.Wait()
	runtime.GC()
	for i, array := range kept {
		if array.Value() != nil {
			t.Errorf("array %d is kept", i)
		}
	}
	runtime.KeepAlive(job)
}

// TestCPUAllocatesNothing checks the steady state of both calls.
func TestCPUAllocatesNothing(t *testing.T) {
	card, err := driver.Open(testContext(t), "cpu:workers=4")
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	job := configure(t, card, driver.JobConfig{})
	in := arrays(1, 4, 100_000)
	sum := make([]float32, 100_000)
	ctx := testContext(t)
	if n := testing.AllocsPerRun(20, func() {
		if err := job.Reduce(ctx, sum, in); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("Reduce allocates %v times", n)
	}

	next, done := make(chan int), make(chan error)
	for range 4 {
		go func() {
			for r := range next {
				done <- job.Member(r).AllReduce(ctx, in[r])
			}
		}()
	}
	defer close(next)
	reduce := func() {
		for r := range 4 {
			next <- r
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 40 {
		reduce() // in the end, every slot has its memory
	}
	if n := testing.AllocsPerRun(20, reduce); n > 0 {
		t.Errorf("AllReduce allocates %v times", n)
	}
}

// TestCPUBehindASocket has the card serve its byte stream on a socket, for one host after another.
func TestCPUBehindASocket(t *testing.T) {
	card, err := cpu.New(cpu.Config{Lanes: 4, Ports: 3, Chunk: 32, Window: 8, Shell: wire.ShellStream, Link: 32, Sum: wire.SumExact})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "card")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served <- card.Serve(conn)
		}
	}()
	t.Cleanup(func() { listener.Close() })
	for host := range uint64(2) {
		card, err := driver.Open(testContext(t), "unix:"+path)
		if err != nil {
			t.Fatal(err)
		}
		job := configure(t, card, driver.JobConfig{})
		in := arrays(host, 3, 1000)
		sum, reference := make([]float32, 1000), make([]float32, 1000)
		if err := job.Reduce(testContext(t), sum, in); err != nil {
			t.Fatal(err)
		}
		model, err := driver.Open(testContext(t), "model:sum=exact,workers=3")
		if err != nil {
			t.Fatal(err)
		}
		if err := configure(t, model, driver.JobConfig{}).Reduce(testContext(t), reference, in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", sum, reference)
		if err := errors.Join(card.Close(), model.Close(), <-served); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCPURecordsFrames checks that a recorded card uses its link, so that the recording has the
// frames.
func TestCPURecordsFrames(t *testing.T) {
	var recording bytes.Buffer
	card, err := driver.Open(testContext(t), "cpu:workers=2,chunk=16", driver.WithRecord(&recording))
	if err != nil {
		t.Fatal(err)
	}
	job := configure(t, card, driver.JobConfig{})
	in := arrays(1, 2, 10_000)
	sum := make([]float32, 10_000)
	if err := job.Reduce(testContext(t), sum, in); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "sum", sum, treeSum(in, firstPorts(2), 2))
	if err := card.Close(); err != nil {
		t.Fatal(err)
	}
	if recording.Len() < 3*4*10_000 { // two contributions and the sum
		t.Errorf("the recording has %d bytes", recording.Len())
	}
}
