// Seeded random numbers: SplitMix64.
#pragma once
#include <cstdint>

namespace trncore {

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t word() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

    // Uniform in 0 .. count - 1; the bias of count / 2^64 does not matter here.
    uint64_t below(uint64_t count) { return word() % count; }

    bool chance(double probability) {
        return probability > 0 && double(word() >> 11) * 0x1p-53 < probability;
    }

    void fill(uint8_t* bytes, uint64_t length) {
        for (uint64_t i = 0; i < length; ++i) bytes[i] = uint8_t(word());
    }

private:
    uint64_t state_;
};

}  // namespace trncore
