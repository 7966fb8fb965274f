// The referee: the numbers contract (golden/NUMBERS.md) in exact integer arithmetic, one word at a time.
//
// Written from the contract alone.  A finite number is significand * 2^exponent; a sum is an integer of 576 bits
// that counts units of 2^-298, which holds acc + x * w of any two formats up to float32 without losing a bit; every
// result is rounded once.  No floating-point instruction is used.
//
// Words hold a format's sign, exponent and fraction above its low zero bits, and nothing above the sign.  Formats may
// be any with at most 8 exponent and at most 23 fraction bits whose exponents are float32's; accumulators have
// infinities.

#pragma once

#include <array>
#include <cstdint>

namespace referee {

// How much of a number an operand of the array is (section 4): all of it, or one of its two parts.
enum Part { WHOLE, HIGH, LOW };
constexpr int HIGH_BITS = 12;

struct Format {
    int exponent_bits, fraction_bits, bias;
    bool has_inf;
    int low_zero_bits;
    int part = WHOLE;

    constexpr int sign_place() const { return exponent_bits + fraction_bits + low_zero_bits; }
    // Magnitudes, as words: the first code of the top exponent, and all ones above the low zero bits.
    constexpr uint32_t top_exponent() const { return ((1u << exponent_bits) - 1) << (fraction_bits + low_zero_bits); }
    constexpr uint32_t all_ones() const { return ((1u << (exponent_bits + fraction_bits)) - 1) << low_zero_bits; }

    constexpr uint32_t nan() const {
        return has_inf ? top_exponent() | 1u << (fraction_bits - 1 + low_zero_bits) : all_ones();
    }
    constexpr uint32_t largest() const { return (has_inf ? top_exponent() : all_ones()) - (1u << low_zero_bits); }
};

struct Integer {
    int bits;
    bool is_signed;

    constexpr int64_t largest() const { return (int64_t(1) << (bits - is_signed)) - 1; }
    constexpr int64_t smallest() const { return is_signed ? -largest() - 1 : 0; }
};

// One of the two.
struct Type {
    bool is_float;
    Format format;
    Integer integer;
};

// By the data type codes of the instruction set.
constexpr std::array<Type, 13> TYPES = {{
    {true, {8, 23, 127, true, 0}, {}},      // float32
    {true, {8, 10, 127, true, 13}, {}},     // tfloat32
    {true, {8, 7, 127, true, 0}, {}},       // bfloat16
    {true, {5, 10, 15, true, 0}, {}},       // float16
    {true, {5, 2, 15, true, 0}, {}},        // float8_e5m2
    {true, {4, 3, 7, true, 0}, {}},         // float8_e4m3
    {true, {4, 3, 7, false, 0}, {}},        // float8_e4m3fn
    {true, {3, 4, 3, true, 0}, {}},         // float8_e3m4
    {false, {}, {8, true}},                 // int8
    {false, {}, {8, false}},                // uint8
    {false, {}, {16, true}},                // int16
    {false, {}, {16, false}},               // uint16
    {false, {}, {32, true}},                // int32
}};
constexpr Format FLOAT32 = TYPES[0].format;

// Numbers ------------------------------------------------------------------------------------------

enum class Kind { FINITE, INFINITE, NAN_, ABSENT };

// If finite, (-1)^negative * significand * 2^exponent.
struct Number {
    Kind kind;
    bool negative;
    uint64_t significand;
    int exponent;
};

constexpr Number NOT_A_NUMBER{Kind::NAN_, false, 0, 0};

inline int bit_length(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

inline Number decode(const Format& format, uint32_t word) {
    const bool negative = word >> format.sign_place() & 1;
    const uint32_t magnitude = word & ((1u << format.sign_place()) - 1);
    if (format.has_inf) {
        // On all bits, those included that are about to be dropped.
        if (magnitude > format.top_exponent()) return NOT_A_NUMBER;
        if (magnitude == format.top_exponent()) return {Kind::INFINITE, negative, 0, 0};
    } else if (magnitude >= format.all_ones()) {
        return NOT_A_NUMBER;
    }
    const uint32_t code = magnitude >> format.low_zero_bits;
    const uint32_t field = code >> format.fraction_bits;
    const uint32_t fraction = code & ((1u << format.fraction_bits) - 1);
    const uint32_t one = 1u << format.fraction_bits;
    const int unit = 1 - format.bias - format.fraction_bits;        // exponent of a subnormal's last place
    if (field == 0) return {Kind::FINITE, negative, fraction, unit};
    return {Kind::FINITE, negative, one + fraction, unit + int(field) - 1};
}

// Section 4: the operand that the array reads of a number.
inline Number operand(const Format& format, uint32_t word) {
    Number number = decode(format, word);
    if (format.part == WHOLE) return number;
    const bool has_parts = number.kind == Kind::FINITE && bit_length(number.significand) > HIGH_BITS;
    const int low_bits = has_parts ? bit_length(number.significand) - HIGH_BITS : 0;
    const uint64_t low = number.significand & ((uint64_t(1) << low_bits) - 1);
    if (format.part == HIGH) {
        number.significand -= low;
        return number;
    }
    return low ? Number{Kind::FINITE, number.negative, low, number.exponent} : Number{Kind::ABSENT, false, 0, 0};
}

// Returns value / 2^places rounded to nearest, ties to even.  Negative places multiply.
inline uint64_t divide_by_power(uint64_t value, int places) {
    if (places <= 0) return value << -places;
    if (places > 64) return 0;                                      // less than a half
    const uint64_t quotient = places == 64 ? 0 : value >> places;
    const uint64_t rest = value << (64 - places), half = uint64_t(1) << 63;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

// Returns the word of a number rounded once.
inline uint32_t encode(const Format& format, const Number& number, bool saturate = false) {
    const uint32_t sign = uint32_t(number.negative) << format.sign_place();
    if (number.kind == Kind::NAN_) return format.nan();
    if (number.kind == Kind::FINITE) {
        if (number.significand == 0) return sign;
        // Codes of consecutive magnitudes are consecutive, through every change of exponent.  So rounding up
        // is adding one, and there is no upper end until the result is compared with the largest code.
        const int lowest = 1 - format.bias, leading = number.exponent + bit_length(number.significand) - 1;
        const int exponent = leading < lowest ? lowest : leading;
        const uint64_t units = divide_by_power(number.significand, exponent - format.fraction_bits - number.exponent);
        const uint64_t code = (uint64_t(exponent - lowest) << format.fraction_bits) + units;
        if (code <= format.largest() >> format.low_zero_bits) return sign | uint32_t(code << format.low_zero_bits);
    }
    if (saturate) return sign | format.largest();
    return format.has_inf ? sign | format.top_exponent() : format.nan();
}

// Sums ---------------------------------------------------------------------------------------------

// An exact sum: a two's complement integer, least significant word first, in units of 2^LOWEST.
class Sum {
public:
    // Adds a finite number of at most 48 bits.
    void add(const Number& number) {
        const int place = number.exponent - LOWEST;
        const auto aligned = static_cast<unsigned __int128>(number.significand) << place % 64;
        const uint64_t parts[2] = {uint64_t(aligned), uint64_t(aligned >> 64)};
        bool carry = false;
        for (int i = place / 64, part = 0; i < WORDS; ++i, ++part) {
            const uint64_t value = part < 2 ? parts[part] : 0;
            if (part >= 2 && !carry) break;
            bool first, second;
            if (number.negative) {
                first = __builtin_sub_overflow(words_[i], value, &words_[i]);
                second = __builtin_sub_overflow(words_[i], uint64_t(carry), &words_[i]);
            } else {
                first = __builtin_add_overflow(words_[i], value, &words_[i]);
                second = __builtin_add_overflow(words_[i], uint64_t(carry), &words_[i]);
            }
            carry = first || second;
        }
    }

    // Returns the 64 leading bits, the last of them also set if anything but zeros follows.  For rounding to
    // at most 62 bits this is as good as all of them.
    Number total() const {
        Number number{Kind::FINITE, words_[WORDS - 1] >> 63 != 0, 0, 0};
        std::array<uint64_t, WORDS> magnitude = words_;
        if (number.negative) {
            bool carry = true;
            for (uint64_t& word : magnitude) carry = __builtin_add_overflow(~word, uint64_t(carry), &word);
        }
        int top = WORDS - 1;
        while (top > 0 && magnitude[top] == 0) --top;
        if (magnitude[top] == 0) return number;
        const int zeros = 64 - bit_length(magnitude[top]);
        const uint64_t next = top > 0 ? magnitude[top - 1] : 0;
        number.significand = magnitude[top] << zeros | (zeros ? next >> (64 - zeros) : 0);
        number.exponent = LOWEST + 64 * top - zeros;
        uint64_t rest = next << zeros;
        for (int i = 0; i < top - 1; ++i) rest |= magnitude[i];
        number.significand |= rest != 0;
        return number;
    }

private:
    static constexpr int LOWEST = -298;     // The last place of a product of two float32 subnormals.
    static constexpr int WORDS = 9;         // Up to 2^278; the largest sum is below 2^257.
    std::array<uint64_t, WORDS> words_{};
};

inline Number multiply(const Number& x, const Number& w) {
    const bool negative = x.negative != w.negative;
    if (x.kind == Kind::NAN_ || w.kind == Kind::NAN_) return NOT_A_NUMBER;
    if (x.kind == Kind::FINITE && w.kind == Kind::FINITE)
        return {Kind::FINITE, negative, x.significand * w.significand, x.exponent + w.exponent};
    const Number& other = x.kind == Kind::INFINITE ? w : x;
    const bool zero = other.kind == Kind::FINITE && other.significand == 0;
    return zero ? NOT_A_NUMBER : Number{Kind::INFINITE, negative, 0, 0};
}

inline Number add(const Number& a, const Number& b) {
    if (a.kind == Kind::NAN_ || b.kind == Kind::NAN_) return NOT_A_NUMBER;
    if (a.kind == Kind::INFINITE && b.kind == Kind::INFINITE) return a.negative == b.negative ? a : NOT_A_NUMBER;
    if (a.kind == Kind::INFINITE) return a;
    if (b.kind == Kind::INFINITE) return b;
    Sum sum;
    sum.add(a);
    sum.add(b);
    Number total = sum.total();
    // A zero is negative only as the sum of two negative ones.
    if (total.significand == 0) total.negative = a.negative && b.negative;
    return total;
}

// Operations on words --------------------------------------------------------------------------------

// Section 2: acc + x * w, rounded once to the accumulator's format; acc where a part does not exist.
inline uint32_t fused_multiply_add(const Format& x, uint32_t x_word, const Format& w, uint32_t w_word,
                                   const Format& acc, uint32_t acc_word) {
    const Number a = operand(x, x_word), b = operand(w, w_word), sum = decode(acc, acc_word);
    if (a.kind == Kind::ABSENT || b.kind == Kind::ABSENT) return encode(acc, sum);
    return encode(acc, add(sum, multiply(a, b)));
}

// One float32 addition.
inline uint32_t add(uint32_t a, uint32_t b) { return encode(FLOAT32, add(decode(FLOAT32, a), decode(FLOAT32, b))); }

// Section 5, reading: the float32 word of an element.
inline uint32_t widen(const Format& source, uint32_t word) { return encode(FLOAT32, decode(source, word)); }

inline uint32_t widen(const Integer& source, uint32_t word) {
    const int64_t modulus = int64_t(1) << source.bits;
    const int64_t value = word > uint64_t(source.largest()) ? int64_t(word) - modulus : int64_t(word);
    return encode(FLOAT32, {Kind::FINITE, value < 0, uint64_t(value < 0 ? -value : value), 0});
}

// Section 5, writing: the element of a float32 word.
inline uint32_t narrow(const Format& target, uint32_t word, bool saturate) {
    return encode(target, decode(FLOAT32, word), saturate);
}

// Integers always saturate.
inline uint32_t narrow(const Integer& target, uint32_t word, bool = true) {
    const Number number = decode(FLOAT32, word);
    if (number.kind == Kind::NAN_) return 0;
    // From 2^33 on every number is beyond every end.
    const bool huge = number.kind == Kind::INFINITE || number.exponent > 33 - 24;
    const int64_t magnitude = huge ? int64_t(1) << 33 : int64_t(divide_by_power(number.significand, -number.exponent));
    int64_t value = number.negative ? -magnitude : magnitude;
    if (value > target.largest()) value = target.largest();
    if (value < target.smallest()) value = target.smallest();
    return uint32_t(uint64_t(value) & ((uint64_t(1) << target.bits) - 1));
}

inline uint32_t widen(const Type& source, uint32_t word) {
    return source.is_float ? widen(source.format, word) : widen(source.integer, word);
}

inline uint32_t narrow(const Type& target, uint32_t word, bool saturate) {
    return target.is_float ? narrow(target.format, word, saturate) : narrow(target.integer, word);
}

}  // namespace referee
