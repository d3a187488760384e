# CRC-32 as zlib has it, by carry-less multiplication where the processor can: four to six times as
# fast. A send counts the body it takes, a pull each body it hands out. The method is that of Intel's
# white paper "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"; the numbers
# are powers of x modulo the polynomial, bit-reflected. Elsewhere, and for what is left over, zlib
# counts.
from libc.stdint cimport uint8_t, uint32_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <zlib.h>

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define GANTRY_FOLDED_MIN 64
    #define GANTRY_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
    #define GANTRY_FOLD(x, k, more) _mm_xor_si128(_mm_xor_si128( \\
        _mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), more)

    /* The state of the checksum after count bytes, of which there are 64 at least, in sixteens. */
    __attribute__((target("pclmul,sse4.1")))
    static uint32_t gantry_crc32_folded(uint32_t state, const uint8_t *at, size_t count) {
        const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
        const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
        const __m128i by_4 = _mm_set_epi64x(0, 0x0163cd6124);
        const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
        const __m128i low_32 = _mm_set_epi32(0, 0, 0, -1);
        __m128i a = _mm_xor_si128(GANTRY_LOAD(at), _mm_cvtsi32_si128((int)state));
        __m128i b = GANTRY_LOAD(at + 16), c = GANTRY_LOAD(at + 32), d = GANTRY_LOAD(at + 48), t;
        for (at += 64, count -= 64; count >= 64; at += 64, count -= 64) {
            a = GANTRY_FOLD(a, by_64, GANTRY_LOAD(at));
            b = GANTRY_FOLD(b, by_64, GANTRY_LOAD(at + 16));
            c = GANTRY_FOLD(c, by_64, GANTRY_LOAD(at + 32));
            d = GANTRY_FOLD(d, by_64, GANTRY_LOAD(at + 48));
        }
        a = GANTRY_FOLD(a, by_16, b);
        a = GANTRY_FOLD(a, by_16, c);
        a = GANTRY_FOLD(a, by_16, d);
        for (; count >= 16; at += 16, count -= 16)
            a = GANTRY_FOLD(a, by_16, GANTRY_LOAD(at));
        a = _mm_xor_si128(_mm_clmulepi64_si128(a, by_16, 0x10), _mm_srli_si128(a, 8));
        t = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), by_4, 0x00);
        a = _mm_xor_si128(t, _mm_srli_si128(a, 4));
        t = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), barrett, 0x10);
        t = _mm_clmulepi64_si128(_mm_and_si128(t, low_32), barrett, 0x00);
        return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, t), 1);
    }

    static uint32_t gantry_crc32(const uint8_t *at, uint32_t count) {
        uint32_t whole = count & ~15u, crc = 0;
        if (count < GANTRY_FOLDED_MIN || !__builtin_cpu_supports("pclmul")
            || !__builtin_cpu_supports("sse4.1"))
            return (uint32_t)crc32(0, at, count);
        crc = ~gantry_crc32_folded(~crc, at, whole);
        return whole == count ? crc : (uint32_t)crc32(crc, at + whole, count - whole);
    }
    #else
    static uint32_t gantry_crc32(const uint8_t *at, uint32_t count) {
        return (uint32_t)crc32(0, at, count);
    }
    #endif
    """
    uint32_t body_crc "gantry_crc32" (const uint8_t *at, uint32_t count) nogil
