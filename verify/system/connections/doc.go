// Package connections runs RDMA hosts in software through cards with shell roce, on one virtual clock. Its
// tables of bad input are those of every card: the tests here run them on Verilated gateware, and the tests
// of driver/virtual/ethernet on the model.
package connections
