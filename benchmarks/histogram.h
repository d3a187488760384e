/* Latency histogram: 64 buckets per power of two, an error of at most 1.6 %. */

#include <stdint.h>
#include <stdio.h>

#define STEPS 64
#define BUCKETS (STEPS * 48)

struct histogram {
    uint64_t buckets[BUCKETS], count, max_ns;
};

static uint32_t bucket_of(uint64_t ns) {
    if (ns < STEPS) return ns;
    uint32_t power = 63 - __builtin_clzll(ns) - 6;
    uint32_t bucket = power * STEPS + (ns >> power);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t bucket_ns(uint32_t bucket) {
    if (bucket < 2 * STEPS) return bucket;
    uint32_t power = bucket / STEPS - 1;
    return (uint64_t)(bucket - power * STEPS) << power;
}

static void add(struct histogram *h, uint64_t ns) {
    h->buckets[bucket_of(ns)]++;
    h->count++;
    if (ns > h->max_ns) h->max_ns = ns;
}

static double percentile_us(const struct histogram *h, double share) {
    uint64_t left = h->count * share;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (h->buckets[i] > left) return bucket_ns(i) / 1000.0;
        left -= h->buckets[i];
    }
    return h->max_ns / 1000.0;
}

static void print(const char *name, const struct histogram *h) {
    printf("\"%s\": {\"p50\": %.0f, \"p90\": %.0f, \"p99\": %.0f, \"p99.9\": %.0f, \"max\": %.0f}, ",
           name, percentile_us(h, .5), percentile_us(h, .9), percentile_us(h, .99),
           percentile_us(h, .999), h->max_ns / 1e3);
}
