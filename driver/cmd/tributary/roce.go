package main

// Cards under RoCEv2 that a daemon shares. Without libibverbs the scheme reports how to get it.

import _ "tributary/driver/roce" // registers roce:
