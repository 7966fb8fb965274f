// Spaces of inputs: the value of every port as a function of one index.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The values of one port: a field of the index, looked up in a table if there is one.
struct Axis {
    std::string port;
    unsigned shift;
    uint64_t mask;
    std::vector<uint32_t> table;

    uint32_t value(uint64_t index) const {
        const uint64_t position = index >> shift & mask;
        return table.empty() ? uint32_t(position) : table[position];
    }
};

// Indices are multiplied by an odd number modulo a power of two, which permutes them: any first part of the
// permuted indices is spread evenly over all of them.  A multiplier of 1 leaves them in order.
struct Space {
    std::vector<Axis> axes;
    uint64_t multiplier = 1;
    uint64_t mask = ~uint64_t(0);

    uint32_t value(const Axis& axis, uint64_t index) const { return axis.value(index * multiplier & mask); }
};
