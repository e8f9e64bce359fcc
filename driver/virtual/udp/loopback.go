package udp

import (
	"fmt"
	"os"
	"sync/atomic"
)

// loopbacks counts the addresses of OwnLoopback.
var loopbacks atomic.Uint32

// OwnLoopback returns an address of Linux's loopback network that no other call in this process returns, and
// hardly one in another process. Cards of trees need one each, because they choose their upward UDP ports
// by themselves.
func OwnLoopback() string {
	n := uint32(os.Getpid())*251 + loopbacks.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+n>>16%250, n>>8&0xff, 1+n%250)
}
