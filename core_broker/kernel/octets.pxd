# Reading and writing numbers and words in bytes. The functions are inline in this file, because a
# call into another module costs more than their work.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

# A range of the read buffer, or of the header's scratch memory; p is NULL for a missing text.
cdef struct Text:
    uint8_t *p
    int n

cdef inline uint32_t get32(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]

cdef inline int64_t get64(const uint8_t *at) noexcept nogil:
    return <int64_t>((<uint64_t>get32(at) << 32) | get32(at + 4))

cdef inline uint32_t get16(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 8) | at[1]

cdef inline void put32(uint8_t *at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value

cdef inline void put64(uint8_t *at, int64_t value) noexcept nogil:
    put32(at, <uint32_t>(<uint64_t>value >> 32))
    put32(at + 4, <uint32_t>value)

cdef inline bint same(Text text, const char *word, int count) noexcept nogil:
    return text.n == count and memcmp(text.p, word, count) == 0

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    /* String.hashCode of Java for ASCII; four bytes per step, since each step waits for the previous. */
    static inline uint32_t gantry_java_hash(const uint8_t *at, int count, uint32_t hash) {
        for (; count >= 4; at += 4, count -= 4)
            hash = hash * 923521u + at[0] * 29791u + at[1] * 961u + at[2] * 31u + at[3];
        for (; count > 0; at++, count--) hash = hash * 31u + at[0];
        return hash;
    }

    static inline int gantry_is_ascii(const uint8_t *at, int64_t count) {
        uint64_t word, bits = 0;
        for (; count >= 8; at += 8, count -= 8) { memcpy(&word, at, 8); bits |= word; }
        for (; count > 0; at++, count--) bits |= at[0];
        return (bits & 0x8080808080808080u) == 0;
    }

    /* The first byte that ends the unescaped part of a JSON string of ASCII: a quote, a backslash, a
       control character, or a byte beyond ASCII. */
    static inline uint8_t *gantry_unescaped_end(uint8_t *at, const uint8_t *end) {
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8(92);
        const __m128i space = _mm_set1_epi8(' ');
        for (; end - at >= 16; at += 16) {
            const __m128i some = _mm_loadu_si128((const __m128i *)at);
            /* Signed: bytes beyond ASCII are less than a space, too. */
            const int stops = _mm_movemask_epi8(_mm_or_si128(
                _mm_cmplt_epi8(some, space),
                _mm_or_si128(_mm_cmpeq_epi8(some, quote), _mm_cmpeq_epi8(some, backslash))));
            if (stops) return at + __builtin_ctz(stops);
        }
    #endif
        while (at < end && *at >= ' ' && *at < 0x80 && *at != '"' && *at != 92) at++;
        return at;
    }

    static inline uint8_t *gantry_put_hex16(uint8_t *at, uint64_t value) {
        for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789ABCDEF"[value >> shift & 15];
        return at;
    }

    static inline uint8_t *gantry_put_decimal(uint8_t *at, int64_t value) {
        uint8_t digits[20];
        int count = 0;
        uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        if (value < 0) *at++ = '-';
        do digits[count++] = '0' + left % 10; while (left /= 10);
        while (count) *at++ = digits[--count];
        return at;
    }
    """
    # The functions that write return the end of the written bytes.
    uint8_t *put_decimal "gantry_put_decimal" (uint8_t *at, int64_t value) noexcept nogil
    uint8_t *put_hex16 "gantry_put_hex16" (uint8_t *at, uint64_t value) noexcept nogil
    uint32_t java_hash "gantry_java_hash" (const uint8_t *at, int count, uint32_t seed) noexcept nogil
    uint8_t *unescaped_end "gantry_unescaped_end" (uint8_t *at, const uint8_t *end) noexcept nogil
    bint is_ascii "gantry_is_ascii" (const uint8_t *at, int64_t count) noexcept nogil
