package main

import _ "tributary/driver/roce" // registers roce:; with the tag roce it needs libibverbs
