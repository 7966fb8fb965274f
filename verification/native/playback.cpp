// Plays recorded inputs through a unit, for one mutant after the other, and compares its outputs.
//
//   program INPUTS EXPECTED MASK CYCLES MUTANT...
//
// INPUTS, EXPECTED and MASK are files of 32-bit words, INPUT_WORDS or OUTPUT_WORDS a cycle (ports.hpp).  For every
// mutant the unit is made anew and reset; then it prints a line with the mutant and the first cycle whose
// outputs differ from EXPECTED in a bit of MASK, or -1.  With EXPECTED "-" it instead writes the outputs to MASK.

#include "ports.hpp"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using Words = std::vector<uint32_t>;

static Words read_words(const char* path, size_t count) {
    Words words(count);
    std::FILE* file = std::fopen(path, "rb");
    if (!file || std::fread(words.data(), sizeof(uint32_t), count, file) != count) {
        std::fprintf(stderr, "%s does not hold %zu words\n", path, count);
        std::exit(2);
    }
    std::fclose(file);
    return words;
}

// A unit after reset.  Outputs are sampled just before the rising edge, with the inputs of their cycle.
class Bench {
public:
    explicit Bench(uint32_t mutant) : model_(&context_, "") {
        const Words zeros(INPUT_WORDS + 1);
        drive(model_, zeros.data());
        select(model_, mutant);
        reset(model_, 1);
        for (int cycle = 0; cycle < 2; ++cycle) {
            settle();
            edge();
        }
        reset(model_, 0);
    }
    ~Bench() { model_.final(); }

    void outputs(const uint32_t* inputs, uint32_t* words) {
        drive(model_, inputs);
        settle();
        sample(model_, words);
        edge();
    }

private:
    void settle() {
        model_.clk = 0;
        model_.eval();
    }
    void edge() {
        model_.clk = 1;
        model_.eval();
    }

    VerilatedContext context_;
    Model model_;
};

static long first_difference(uint32_t mutant, size_t cycles, const Words& inputs, const Words& expected,
                             const Words& mask) {
    Bench bench(mutant);
    uint32_t words[OUTPUT_WORDS];
    for (size_t cycle = 0; cycle < cycles; ++cycle) {
        bench.outputs(&inputs[cycle * INPUT_WORDS], words);
        const size_t start = cycle * OUTPUT_WORDS;
        for (size_t i = 0; i < OUTPUT_WORDS; ++i)
            if ((words[i] ^ expected[start + i]) & mask[start + i]) return long(cycle);
    }
    return -1;
}

static void record(uint32_t mutant, size_t cycles, const Words& inputs, const char* path) {
    Bench bench(mutant);
    Words outputs(cycles * OUTPUT_WORDS);
    for (size_t cycle = 0; cycle < cycles; ++cycle)
        bench.outputs(&inputs[cycle * INPUT_WORDS], &outputs[cycle * OUTPUT_WORDS]);
    std::FILE* file = std::fopen(path, "wb");
    if (!file || std::fwrite(outputs.data(), sizeof(uint32_t), outputs.size(), file) != outputs.size()
        || std::fclose(file)) {
        std::fprintf(stderr, "%s cannot be written\n", path);
        std::exit(2);
    }
}

int main(int argc, char** argv) {
    if (argc < 6) return 2;
    const size_t cycles = std::strtoull(argv[4], nullptr, 10);
    Words inputs = read_words(argv[1], cycles * INPUT_WORDS);
    if (argv[2] == std::string("-")) {
        record(uint32_t(std::strtoul(argv[5], nullptr, 10)), cycles, inputs, argv[3]);
        return 0;
    }
    const Words expected = read_words(argv[2], cycles * OUTPUT_WORDS);
    const Words mask = read_words(argv[3], cycles * OUTPUT_WORDS);
    for (int i = 5; i < argc; ++i) {
        const uint32_t mutant = uint32_t(std::strtoul(argv[i], nullptr, 10));
        std::printf("%u %ld\n", mutant, first_difference(mutant, cycles, inputs, expected, mask));
        std::fflush(stdout);
    }
}
