// Device memory: buffers of the host where it mapped some, random bytes elsewhere.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "random.hpp"

namespace trncore {

class Memory {
public:
    explicit Memory(uint64_t seed) : seed_(seed) {}

    // Let `base .. base + length - 1` be the bytes at `data`, which stay the host's.  What the core writes
    // goes there too, or into a private copy if the buffer is not `writable`.
    void map(uint64_t base, uint64_t length, uint8_t* data, bool writable) {
        if (length) segments_[base] = {length, data, writable, {}};
    }

    void read(uint64_t address, uint8_t* bytes, uint64_t length) {
        while (length) {
            Span span = find(address, false);
            uint64_t part = std::min(length, span.length);
            std::memcpy(bytes, span.data, part);
            address += part, bytes += part, length -= part;
        }
    }

    void write(uint64_t address, const uint8_t* bytes, uint64_t length) {
        while (length) {
            Span span = find(address, true);
            uint64_t part = std::min(length, span.length);
            std::memcpy(span.data, bytes, part);
            address += part, bytes += part, length -= part;
        }
    }

private:
    static constexpr uint64_t kPage = 1 << 16;

    struct Span {
        uint8_t* data = nullptr;
        uint64_t length = 0;
    };
    struct Segment {
        uint64_t length;
        uint8_t* data;
        bool writable;
        std::vector<uint8_t> copy;
    };

    // Bytes from `address` on that lie together.
    Span find(uint64_t address, bool write) {
        auto after = segments_.upper_bound(address);
        uint64_t limit = after == segments_.end() ? ~uint64_t(0) : after->first;
        if (after != segments_.begin()) {
            auto& [base, segment] = *std::prev(after);
            if (address - base < segment.length) {
                if (write && !segment.writable) {
                    segment.copy.assign(segment.data, segment.data + segment.length);
                    segment.data = segment.copy.data();
                    segment.writable = true;
                }
                return {segment.data + (address - base), segment.length - (address - base)};
            }
        }
        auto& page = pages_[address / kPage];
        if (!page) {
            page = std::make_unique<uint8_t[]>(kPage);
            Random(seed_ * 0x2545F4914F6CDD1Du ^ address / kPage).fill(page.get(), kPage);
        }
        uint64_t offset = address % kPage;
        return {page.get() + offset, std::min(kPage - offset, limit - address)};
    }

    uint64_t seed_;
    std::map<uint64_t, Segment> segments_;
    std::map<uint64_t, std::unique_ptr<uint8_t[]>> pages_;
};

}  // namespace trncore
