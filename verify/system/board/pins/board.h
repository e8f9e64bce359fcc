// The board of facts.h.
#pragma once

#include <type_traits>

#include "Vboard_top.h"
#include "controller.h"
#include "facts.h"
#include "fifo/board.h"
#include "fifo/bridge.h"
#include "pair/board.h"
#include "ulpi/board.h"

namespace usb {

using Board = std::conditional_t<Facts::FIFO, FifoBoardOf<Vboard_top>,
                                 std::conditional_t<Facts::ULPI, UlpiBoardOf<Vboard_top>, PairBoardOf<Vboard_top>>>;

// The part that makes transfers.
using Device = std::conditional_t<Facts::FIFO, Bridge, Controller>;

}  // namespace usb
