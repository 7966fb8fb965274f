// A Verilated pipeline that takes LANES vectors a cycle: one for the Verilog as exported, 64 for its lanes netlist.

#pragma once

#include "verilated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// A port in the Verilated model: of a lanes netlist an array of words of 64 lanes, one word for each bit.
struct Field {
    std::string name;
    void* data;
    size_t bytes;
};

// Generated: the model Vunit, LANES, LATENCY (cycles from inputs to output), inputs(model), output(model).
#include "ports.hpp"

// One value of a port per lane.
using Batch = std::array<uint32_t, LANES>;

// Transposes words of 32 bits by lanes to words of 64 lanes by bits; the same function turns them back.
// Both halves of 32 lanes are transposed at once, as blocks of 32 x 32 bits that are swapped in ever smaller parts.
inline void transpose_halves(std::array<uint64_t, 32>& rows) {
    uint64_t mask = 0x0000ffff0000ffff;
    for (unsigned distance = 16; distance; distance >>= 1, mask ^= mask << distance)
        for (unsigned block = 0; block < 32; block += 2 * distance)
            for (unsigned row = block; row < block + distance; ++row) {
                const uint64_t swapped = ((rows[row] >> distance) ^ rows[row + distance]) & mask;
                rows[row] ^= swapped << distance;
                rows[row + distance] ^= swapped;
            }
}

class Engine {
public:
    Engine() : model_(&context_, ""), inputs_(inputs(model_)), output_(output(model_)), previous_(inputs_.size()) {
        const Batch zeros{};
        for (size_t port = 0; port < inputs_.size(); ++port) write(inputs_[port], zeros);
        model_.eval();      // The first evaluation sees no edge.
    }
    ~Engine() { model_.final(); }

    const std::vector<Field>& fields() const { return inputs_; }

    // Applies values to a port; for the next cycle and those that follow.
    void set(size_t port, const Batch& values) {
        if (values == previous_[port]) return;
        previous_[port] = values;
        write(inputs_[port], values);
    }

    // Advances by one cycle.
    void cycle() {
        if (LANES > 1) {    // Registers of a lanes netlist work on both edges.
            model_.clk = !model_.clk;
            model_.eval();
        } else {
            model_.clk = 1;
            model_.eval();
            model_.clk = 0;
            model_.eval();
        }
    }

    // Reads what came out of the last cycle.
    void get(Batch& values) const {
        if (LANES == 1) {
            values[0] = 0;
            std::memcpy(&values[0], output_.data, output_.bytes);
            return;
        }
        std::array<uint64_t, 32> rows{};
        std::memcpy(rows.data(), output_.data, output_.bytes);
        transpose_halves(rows);
        for (size_t row = 0; row < LANES / 2; ++row) {
            values[row] = uint32_t(rows[row]);
            values[row + LANES / 2] = uint32_t(rows[row] >> 32);
        }
    }

private:
    static void write(const Field& field, const Batch& values) {
        if (LANES == 1) {
            std::memcpy(field.data, &values[0], field.bytes);
            return;
        }
        std::array<uint64_t, 32> rows;
        for (size_t row = 0; row < LANES / 2; ++row)
            rows[row] = values[row] | uint64_t(values[row + LANES / 2]) << 32;
        transpose_halves(rows);
        std::memcpy(field.data, rows.data(), field.bytes);
    }

    VerilatedContext context_;
    Vunit model_;
    std::vector<Field> inputs_;
    Field output_;
    std::vector<Batch> previous_;
};
