// What a unit computes, by the referee: the word that must come out, from the words of the operands.

#pragma once

#include "referee.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr size_t MAX_OPERANDS = 3;

template <size_t N>
using Operands = std::array<uint32_t, N>;

struct MultiplyAdd {
    static constexpr size_t OPERANDS = 3;
    referee::Format x, w, acc;

    uint32_t operator()(const Operands<3>& words) const {
        return referee::fused_multiply_add(x, words[0], w, words[1], acc, words[2]);
    }
};

// The accumulator without a product: itself, but for the bits of a NaN.
struct Skip {
    static constexpr size_t OPERANDS = 3;
    referee::Format acc;

    uint32_t operator()(const Operands<3>& words) const {
        return referee::encode(acc, referee::decode(acc, words[2]));
    }
};

struct Add {
    static constexpr size_t OPERANDS = 2;

    uint32_t operator()(const Operands<2>& words) const { return referee::add(words[0], words[1]); }
};

struct Narrow {
    static constexpr size_t OPERANDS = 1;
    referee::Type target;
    bool saturate;

    uint32_t operator()(const Operands<1>& words) const { return referee::narrow(target, words[0], saturate); }
};

struct Convert {
    static constexpr size_t OPERANDS = 1;
    referee::Type source, target;
    bool saturate;

    uint32_t operator()(const Operands<1>& words) const {
        return referee::narrow(target, referee::widen(source, words[0]), saturate);
    }
};

// Calls `use` with the operation of this name for operands (and a result) of these types.
template <class Use>
void with_operation(const std::string& name, const std::vector<referee::Type>& types, bool flag, Use use) {
    if (name == "fma" && types.size() == 3 && flag) {
        use(Skip{types[2].format});
    } else if (name == "fma" && types.size() == 3) {
        use(MultiplyAdd{types[0].format, types[1].format, types[2].format});
    } else if (name == "add" && types.size() == 2) {
        use(Add{});
    } else if (name == "narrow" && types.size() == 1) {
        use(Narrow{types[0], flag});
    } else if (name == "convert" && types.size() == 2) {
        use(Convert{types[0], types[1], flag});
    } else {
        std::fprintf(stderr, "unknown operation %s of %zu types\n", name.c_str(), types.size());
        std::exit(2);
    }
}
