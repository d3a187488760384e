/* The load generator: keeps requests in flight on many connections and measures the answers.
 *
 *     loadgen HOST PORT CONNECTIONS IN_FLIGHT SECONDS MESSAGES_MAX RATE < templates
 *
 * Compiled with -DTLS, all connections have TLS (transport.h).
 *
 * RATE 0 is a closed loop: each response triggers the next request. Any other RATE is an open loop:
 * RATE requests per second are due even when the server falls behind, and a latency starts at the
 * due time of its request.
 *
 * Standard input contains n templates; connection i uses template i modulo n:
 *
 *     4 length of the frame   4 messages in a request, 0: a pull, 2^32 - 1: a pull at the end   frame
 *     4 length of the rest, 0: unsigned   64 secret key, padded with zeros   signed bytes
 *
 * all integers big-endian. A signed send has its signature as SIGNATURE (28 bytes), and its signed
 * bytes have the KEYs of the frame in the same order. In the frame of a send, each KEY (16 bytes) becomes a unique number that
 * also encodes the due time of the request. A pull at the end reads the number from UNIQ_KEY and
 * measures the end-to-end latency of messages sent by any generator on the machine since its start.
 * A pull has its queue offset as OFFSET (18 digits); nextBeginOffset of each response replaces the
 * offset. At the end of the queue the connection restarts at 0, or stops when SECONDS is 0; a pull at
 * the end stays there and pulls again.
 *
 * Prints one JSON object. A response code other than 0 ends the run, as the results would be
 * meaningless. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "hmac_sha1.h"
#include "transport.h"

#define KEY "KEYKEYKEYKEYKEYK"
#define KEY_BYTES 16
#define KEYS_MAX 1024
#define KEY_SHIFT 16 /* lower bits: the process id, so that generators never share a key */
#define UNIQ_KEY "UNIQ_KEY\1"
#define UNIQ_KEY_BYTES 9
#define PROPERTIES_MAX 128 /* maximum properties of a message for a pull at the end, bytes */
#define SIGNATURE "SIGNATURESIGNATURESIGNATURE="
#define OFFSET "987654321987654321"
#define OFFSET_BYTES 18
#define IN_BYTES (4 << 20)
#define IN_FLIGHT_MAX 1024
#define TAIL 0xFFFFFFFFu
#define PULL_NOT_FOUND 19
#define PULL_RETRY_IMMEDIATELY 20
#define PULL_OFFSET_MOVED 21
#define SILENCE_MS_MAX 20000
#define EVENTS_MAX 256

struct template {
    uint8_t *frame;
    uint32_t bytes, messages, is_pull, is_tail;
    uint32_t key_at[KEYS_MAX], keys, offset_at;
    uint8_t *content; /* the signed bytes, or NULL */
    uint32_t content_bytes, content_key_at[KEYS_MAX], signature_at;
    struct hmac_key secret;
};

struct connection {
    struct transport transport;
    int is_done;
    struct template *template;
    uint64_t offset;
    uint64_t asked_ns[IN_FLIGHT_MAX]; /* a ring */
    uint32_t first, in_flight;
    uint8_t *out;
    size_t out_bytes, out_max;
    uint8_t *in;
    size_t in_bytes;
    int wants_out;
};

static struct template *templates;
static uint32_t template_count;
static struct connection *connections;
static struct histogram answers, arrivals;
static uint64_t messages, last_key, process, began;
static int poll_fd, is_timed;

static void die(const char *what) {
    fprintf(stderr, "loadgen: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t v) {
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

/* -- requests -- */

static void read_all(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) die("a template is cut off");
}

static uint32_t find_keys(const uint8_t *from, size_t bytes, uint32_t key_at[KEYS_MAX]) {
    const uint8_t *at = from, *end = from + bytes;
    uint32_t keys = 0;
    for (; (at = memmem(at, end - at, KEY, KEY_BYTES)); at += KEY_BYTES) {
        if (keys == KEYS_MAX) die("too many keys in a template");
        key_at[keys++] = at - from;
    }
    return keys;
}

static void read_signing(struct template *t) {
    uint8_t head[4], secret[SHA1_BLOCK], *at;
    read_all(head, 4);
    if (!get32(head)) return;
    t->content_bytes = get32(head) - SHA1_BLOCK;
    t->content = malloc(t->content_bytes);
    read_all(secret, SHA1_BLOCK);
    hmac_prepare(&t->secret, secret);
    read_all(t->content, t->content_bytes);
    at = memmem(t->frame, t->bytes, SIGNATURE, strlen(SIGNATURE));
    if (!at || find_keys(t->content, t->content_bytes, t->content_key_at) != t->keys)
        die("the signed bytes differ from the frame");
    t->signature_at = at - t->frame;
}

static int read_template(void) {
    uint8_t head[8];
    if (fread(head, 1, 8, stdin) != 8) return 0;
    templates = realloc(templates, (template_count + 1) * sizeof *templates);
    struct template *t = &templates[template_count++];
    memset(t, 0, sizeof *t);
    t->bytes = get32(head), t->messages = get32(head + 4);
    t->is_tail = t->messages == TAIL, t->is_pull = t->is_tail || !t->messages;
    t->frame = malloc(t->bytes);
    read_all(t->frame, t->bytes);
    t->keys = find_keys(t->frame, t->bytes, t->key_at);
    read_signing(t);
    if (t->is_pull) {
        uint8_t *at = memmem(t->frame, t->bytes, OFFSET, OFFSET_BYTES);
        if (!at) die("a pull without its offset");
        t->offset_at = at - t->frame;
    }
    return 1;
}

static void write_key(uint8_t *at, uint64_t key) {
    for (int i = KEY_BYTES - 1; i >= 0; i--, key >>= 4) at[i] = "0123456789ABCDEF"[key & 15];
}

static uint64_t new_key(uint64_t due_ns) {
    uint64_t key = due_ns << KEY_SHIFT | process;
    if (key <= last_key) key = last_key + (1u << KEY_SHIFT);
    return last_key = key;
}

static void add_request(struct connection *c, uint64_t due_ns) {
    struct template *t = c->template;
    if (c->out_bytes + t->bytes > c->out_max) {
        c->out_max = 2 * (c->out_bytes + t->bytes);
        c->out = realloc(c->out, c->out_max);
    }
    uint8_t *frame = c->out + c->out_bytes;
    if (!t->is_pull) {
        memcpy(frame, t->frame, t->bytes);
        for (uint32_t i = 0; i < t->keys; i++) {
            write_key(frame + t->key_at[i], new_key(due_ns));
            if (t->content) memcpy(t->content + t->content_key_at[i], frame + t->key_at[i], KEY_BYTES);
        }
        if (t->content) {
            uint8_t digest[SHA1_BYTES];
            hmac(&t->secret, t->content, t->content_bytes, digest);
            put_base64(frame + t->signature_at, digest);
        }
        c->out_bytes += t->bytes;
    } else {
        memcpy(frame, t->frame, t->offset_at);
        int digits = sprintf((char *)frame + t->offset_at, "%llu", (unsigned long long)c->offset);
        uint32_t rest = t->offset_at + OFFSET_BYTES, bytes = t->bytes - OFFSET_BYTES + digits;
        memcpy(frame + t->offset_at + digits, t->frame + rest, t->bytes - rest);
        put32(frame, bytes - 4);
        put32(frame + 4, get32(frame + 4) - OFFSET_BYTES + digits);
        c->out_bytes += bytes;
    }
    c->asked_ns[(c->first + c->in_flight++) % IN_FLIGHT_MAX] = due_ns;
}

static void push(struct connection *c) {
    size_t sent = 0;
    while (sent < c->out_bytes) {
        ssize_t n = write_some(&c->transport, c->out + sent, c->out_bytes - sent);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) die("sending failed");
        sent += n;
    }
    memmove(c->out, c->out + sent, c->out_bytes - sent);
    c->out_bytes -= sent;
    int wants_out = c->out_bytes > 0;
    if (wants_out != c->wants_out) {
        struct epoll_event e = {EPOLLIN | (wants_out ? EPOLLOUT : 0), {.ptr = c}};
        if (epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->transport.fd, &e)) die("epoll_ctl");
        c->wants_out = wants_out;
    }
}

/* -- answers -- */

static long long field(const uint8_t *header, uint32_t bytes, const char *name) {
    const char *at = memmem(header, bytes, name, strlen(name));
    return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

static void note_arrivals(const uint8_t *at, const uint8_t *end) {
    uint64_t ns = now_ns();
    for (uint32_t size; end - at >= 4 && (size = get32(at)) && size <= end - at; at += size) {
        uint32_t tail = size < PROPERTIES_MAX ? size : PROPERTIES_MAX;
        const uint8_t *key = memmem(at + size - tail, tail, UNIQ_KEY, UNIQ_KEY_BYTES);
        if (!key || key + UNIQ_KEY_BYTES + KEY_BYTES > at + size) continue;
        char digits[KEY_BYTES + 1] = {0};
        memcpy(digits, key + UNIQ_KEY_BYTES, KEY_BYTES);
        uint64_t took = ((ns << KEY_SHIFT) - strtoull(digits, NULL, 16)) >> KEY_SHIFT;
        if (took <= ns - began) add(&arrivals, took);
    }
}

static void hear(struct connection *c, const uint8_t *header, uint32_t bytes, const uint8_t *end) {
    long long code = field(header, bytes, "\"code\":");
    struct template *t = c->template;
    if (!t->is_pull && code == 0) {
        messages += t->messages;
    } else if (t->is_pull && code == 0) {
        long long next = field(header, bytes, "\"nextBeginOffset\":\"");
        messages += next - c->offset;
        c->offset = next;
        if (t->is_tail) note_arrivals(header + bytes, end);
    } else if (t->is_tail && (code == PULL_NOT_FOUND || code == PULL_RETRY_IMMEDIATELY)) {
        /* no new messages yet */
    } else if (t->is_tail && code == PULL_OFFSET_MOVED) {
        c->offset = field(header, bytes, "\"nextBeginOffset\":\""); /* what it wanted is deleted */
    } else if (t->is_pull && !t->is_tail && c->offset > 0) {
        c->offset = 0; /* the end of the queue */
        c->is_done = !is_timed;
    } else {
        fprintf(stderr, "loadgen: refused: %.*s\n", (int)bytes, header);
        exit(1);
    }
    add(&answers, now_ns() - c->asked_ns[c->first]);
    c->first = (c->first + 1) % IN_FLIGHT_MAX;
    c->in_flight--;
}

static void receive(struct connection *c) {
    do {
        ssize_t n = read_some(&c->transport, c->in + c->in_bytes, IN_BYTES - c->in_bytes);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) die("the server closed the connection");
        c->in_bytes += n;
        uint8_t *at = c->in, *end = c->in + c->in_bytes;
        while (end - at >= 8 && (size_t)(end - at) >= 4 + (size_t)get32(at)) {
            hear(c, at + 8, get32(at + 4) & 0xFFFFFF, at + 4 + get32(at));
            at += 4 + get32(at);
        }
        c->in_bytes = end - at;
        memmove(c->in, at, c->in_bytes);
    } while (has_more(&c->transport));
}

/* -- the run -- */

static void open_connections(const char *host, int port, int count) {
    connections = calloc(count, sizeof *connections);
    for (int i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        open_transport(&c->transport, host, port);
        c->template = &templates[i % template_count];
        c->in = malloc(IN_BYTES);
        struct epoll_event e = {EPOLLIN, {.ptr = c}};
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->transport.fd, &e)) die("epoll_ctl");
    }
}

/* Send requests until the connection has IN_FLIGHT requests in flight. */
static void ask(struct connection *c, int in_flight) {
    while (!c->is_done && c->in_flight < (uint32_t)in_flight) add_request(c, now_ns());
    push(c);
}

static void ask_due(int count, int in_flight, double rate, uint64_t *asked) {
    static int turn;
    uint64_t due_count = (now_ns() - began) / 1e9 * rate;
    for (int misses = 0; *asked < due_count && misses < count; turn = (turn + 1) % count) {
        struct connection *c = &connections[turn];
        if (c->is_done || c->in_flight >= (uint32_t)in_flight) {
            misses++;
            continue;
        }
        misses = 0;
        add_request(c, began + (uint64_t)(*asked / rate * 1e9));
        push(c);
        ++*asked;
    }
}

int main(int argc, char **argv) {
    if (argc != 8) die("HOST PORT CONNECTIONS IN_FLIGHT SECONDS MESSAGES_MAX RATE");
    int count = atoi(argv[3]), in_flight = atoi(argv[4]);
    uint64_t messages_max = strtoull(argv[6], NULL, 10), asked = 0;
    double seconds = atof(argv[5]), rate = atof(argv[7]);
    is_timed = seconds > 0;
    if (in_flight < 1 || in_flight > IN_FLIGHT_MAX || count < 1) die("out of range");
    while (read_template()) continue;
    if (!template_count) die("no template");
    poll_fd = epoll_create1(0);
    open_connections(argv[1], atoi(argv[2]), count);
    began = now_ns();
    process = getpid() & ((1u << KEY_SHIFT) - 1);
    uint64_t stop_at = is_timed ? began + (uint64_t)(seconds * 1e9) : UINT64_MAX;
    if (rate == 0)
        for (int i = 0; i < count; i++) ask(&connections[i], in_flight);
    for (;;) {
        int is_asking = now_ns() < stop_at && messages < messages_max, open = 0;
        if (is_asking && rate > 0) ask_due(count, in_flight, rate, &asked);
        for (int i = 0; i < count && !open; i++) open = connections[i].in_flight > 0;
        if (!open && !(is_asking && rate > 0)) break;
        struct epoll_event events[EVENTS_MAX];
        /* In an open loop: sleep until the next request is due. */
        uint64_t wait_ns = SILENCE_MS_MAX * 1000000ull;
        if (rate > 0 && is_asking) {
            uint64_t due = began + (uint64_t)((asked + 1) / rate * 1e9), ns = now_ns();
            wait_ns = due > ns ? due - ns : 0;
        }
        struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
        int n = epoll_pwait2(poll_fd, events, EVENTS_MAX, &wait, NULL);
        if (n == 0 && !(rate > 0 && is_asking)) die("no response for 20 s");
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & ~EPOLLOUT) receive(c);
            if (rate == 0 && messages < messages_max && now_ns() < stop_at) ask(c, in_flight);
            else push(c);
        }
    }
    double took = (now_ns() - began) / 1e9;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"messages\": %llu, \"requests\": %llu, \"seconds\": %.3f, \"rate\": %.0f, ",
           (unsigned long long)messages, (unsigned long long)answers.count, took, messages / took);
    print("latency_us", &answers);
    if (arrivals.count) print("end_to_end_us", &arrivals);
    double own = used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6;
    double system = used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6;
    printf("\"generator_cpu_seconds\": %.3f, \"generator_own_seconds\": %.3f}\n", own + system, own);
    return 0;
}
