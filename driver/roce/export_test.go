package roce

import "tributary/driver/transport/rdma"

// Over gives a session an RDMA stack.
var Over = over

// Located returns a stack whose connections have the Ethernet port at which a card sees them.
func Located(stack rdma.Stack, card string) rdma.Stack { return &located{stack, card} }
