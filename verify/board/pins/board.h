// The board that facts.h tells of.
#pragma once

#include <type_traits>

#include "Vboard_top.h"
#include "facts.h"
#include "pair/board.h"
#include "ulpi/board.h"

namespace usb {

using Board = std::conditional_t<Facts::ULPI, UlpiBoardOf<Vboard_top>, PairBoardOf<Vboard_top>>;

}  // namespace usb
