# Rules for the programs of `make bench`, on top of those of a card's sim/Makefile, which builds the
# model with the flags that every virtual card has:
#
#   make -C DIR/sim -f Makefile -f programs.mk BENCH=FOLDER build/saturate

build/saturate build/adders: build/%: $(BENCH)/%.cpp $(BENCH)/operands.h build/model/libVcard.a $(VERILATED_LIBRARY)/libverilated.a
	$(COMPILE) -I . -I build/model $(filter %.cpp %.a,$^) -pthread -o $@
