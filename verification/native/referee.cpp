// The referee over arrays, for Python (referee.py).

#include "referee.hpp"

#include <cstddef>

using namespace referee;

extern "C" {

// By code: is_float, then exponent_bits, fraction_bits, bias, has_inf, low_zero_bits, or bits and is_signed.
void referee_types(int (*table)[6]) {
    for (const Type& type : TYPES) {
        int* row = *table++;
        row[0] = type.is_float;
        if (type.is_float) {
            const Format& format = type.format;
            const int fields[] = {format.exponent_bits, format.fraction_bits, format.bias, format.has_inf,
                                  format.low_zero_bits};
            for (int i = 0; i < 5; ++i) row[1 + i] = fields[i];
        } else {
            row[1] = type.integer.bits;
            row[2] = type.integer.is_signed;
        }
    }
}

void referee_fused_multiply_add(const Format* x, const uint32_t* x_words, const Format* w, const uint32_t* w_words,
                                const Format* acc, const uint32_t* acc_words, uint32_t* out, size_t count) {
    for (size_t i = 0; i < count; ++i)
        out[i] = fused_multiply_add(*x, x_words[i], *w, w_words[i], *acc, acc_words[i]);
}

void referee_add(const uint32_t* a, const uint32_t* b, uint32_t* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = add(a[i], b[i]);
}

void referee_narrow(const Type* target, const uint32_t* words, bool saturate, uint32_t* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = narrow(*target, words[i], saturate);
}

void referee_widen(const Type* source, const uint32_t* words, uint32_t* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = widen(*source, words[i]);
}

}  // extern "C"
