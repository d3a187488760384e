# Characters beyond ASCII in UTF-8. Only the strict form of Unicode's table 3-7 counts as UTF-8: the
# shortest form, no surrogates, nothing above U+10FFFF. The functions are no part of their callers,
# so that the code for ASCII stays short.

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from *:
    """
    #include <stdint.h>

    #define GANTRY_RARE static __attribute__((noinline, unused))

    /* The size of the character beyond ASCII at `at`, bytes; 0 for a malformed one. */
    static inline int gantry_utf8_size(const uint8_t *at, const uint8_t *end) {
        const uint8_t lead = at[0];
        const int64_t left = end - at;
        uint8_t low = 0x80, high = 0xBF;
        int size;
        if (lead < 0xC2 || lead > 0xF4) return 0;
        size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (lead == 0xE0) low = 0xA0;
        else if (lead == 0xED) high = 0x9F;
        else if (lead == 0xF0) low = 0x90;
        else if (lead == 0xF4) high = 0x8F;
        if (left < size || at[1] < low || at[1] > high) return 0;
        if (size > 2 && (at[2] & 0xC0) != 0x80) return 0;
        if (size > 3 && (at[3] & 0xC0) != 0x80) return 0;
        return size;
    }

    GANTRY_RARE int gantry_is_utf8(const uint8_t *at, int64_t count) {
        const uint8_t *end = at + count;
        while (at < end) {
            const int size = *at < 0x80 ? 1 : gantry_utf8_size(at, end);
            if (!size) return 0;
            at += size;
        }
        return 1;
    }

    /* The first byte behind the characters beyond ASCII at `at`, or the first malformed one. */
    GANTRY_RARE uint8_t *gantry_utf8_end(uint8_t *at, const uint8_t *end) {
        while (at < end && *at >= 0x80) {
            const int size = gantry_utf8_size(at, end);
            if (!size) break;
            at += size;
        }
        return at;
    }

    /* Write a character beyond ASCII, which is no surrogate. */
    GANTRY_RARE uint8_t *gantry_put_utf8(uint8_t *at, uint32_t character) {
        if (character < 0x800) {
            *at++ = (uint8_t)(0xC0 | character >> 6);
        } else {
            if (character < 0x10000) {
                *at++ = (uint8_t)(0xE0 | character >> 12);
            } else {
                *at++ = (uint8_t)(0xF0 | character >> 18);
                *at++ = (uint8_t)(0x80 | (character >> 12 & 0x3F));
            }
            *at++ = (uint8_t)(0x80 | (character >> 6 & 0x3F));
        }
        *at++ = (uint8_t)(0x80 | (character & 0x3F));
        return at;
    }

    /* String.hashCode of Java for valid UTF-8: over UTF-16, so characters above U+FFFF count twice. */
    GANTRY_RARE uint32_t gantry_java_hash_utf8(const uint8_t *at, int count, uint32_t hash) {
        const uint8_t *end = at + count;
        while (at < end) {
            const uint32_t lead = at[0];
            if (lead < 0x80) {
                hash = hash * 31u + lead;
                at += 1;
            } else if (lead < 0xE0) {
                hash = hash * 31u + ((lead & 0x1F) << 6 | (at[1] & 0x3F));
                at += 2;
            } else if (lead < 0xF0) {
                hash = hash * 31u
                    + ((lead & 0x0F) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F));
                at += 3;
            } else {
                const uint32_t above = ((lead & 0x07) << 18 | (uint32_t)(at[1] & 0x3F) << 12
                    | (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F)) - 0x10000;
                hash = hash * 961u + (0xD800 | above >> 10) * 31u + (0xDC00 | (above & 0x3FF));
                at += 4;
            }
        }
        return hash;
    }
    """
    bint is_utf8 "gantry_is_utf8" (const uint8_t *at, int64_t count) noexcept nogil
    uint8_t *utf8_end "gantry_utf8_end" (uint8_t *at, const uint8_t *end) noexcept nogil
    # Returns the end of the written bytes.
    uint8_t *put_utf8 "gantry_put_utf8" (uint8_t *at, uint32_t character) noexcept nogil
    uint32_t java_hash_utf8 "gantry_java_hash_utf8" (const uint8_t *at, int count, uint32_t seed) noexcept nogil
