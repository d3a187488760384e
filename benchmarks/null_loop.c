/* The null server of the bounds: receives whole requests, and sends a fixed answer to each.
 *
 *     null_loop MESSAGES LOG SYNC < answer
 *
 * One thread, one epoll, one recv() per ready connection, one system call for the answers of a read.
 * The server reads nothing of a request but its length, so its rate is the rate of the system's TCP
 * with one server thread and the same load generator.
 *
 * Standard input is an answer: 4 bytes length of the head, big-endian; the head, which is the two
 * lengths of a frame and the header; the body. MESSAGES is 0 for answers to sends. For answers to
 * pulls MESSAGES is the number of messages of an answer, and the head has the next queue offset as
 * OFFSET (18 digits); a queue never ends.
 *
 * LOG is a file, or "-" for none. Each send is copied once into the mapped file. Bodies of answers to
 * pulls are sent from the mapped file, which has copies of the body one behind the other. SYNC 1
 * writes the sends of an iteration to the file with one pwrite() and one fdatasync(), and sends the
 * answers afterwards. With SYNC 2 a thread does the fdatasync(), as in Gantry: the loop receives
 * meanwhile, and the sends written during a flush share the next one.
 *
 * Prints the port. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define OFFSET "987654321987654321"
#define OFFSET_BYTES 18
#define HEAD_MAX (64 << 10)
#define BODY_MAX (4 << 20)
#define IN_BYTES (1 << 20)
#define ANSWERS_MAX 1024 /* maximum answers of one system call */
#define EVENTS_MAX 256
#define STAGED_MAX (64 << 20)
#define WAITING_MAX 65536 /* maximum reads whose answers wait for one flush */
#define BY_THREAD 2

struct connection {
    int fd;
    uint32_t owed;  /* requests without an answer, except those that wait for a flush */
    uint32_t waits; /* groups of requests that wait for a flush */
    uint64_t offset;
    size_t in_bytes;
    uint8_t *in;
};

struct group {
    struct {
        struct connection *c;
        uint32_t owed;
    } of[WAITING_MAX];
    int count;
};

static uint8_t head[HEAD_MAX], body[BODY_MAX];
static size_t head_bytes, body_bytes;
static uint8_t *answers; /* ANSWERS_MAX answers to sends */
static uint32_t messages;
static uint8_t *log_start, *staged;
static size_t log_bytes, log_at, staged_bytes;
static int log_fd = -1, is_sync, poll_fd;
static uint8_t *offset_at;
static int asked_fd, done_fd, is_flushing; /* eventfd counters of the flushing thread */
static struct group groups[2], *written = &groups[0], *flushing = &groups[1];

static void die(const char *what) {
    fprintf(stderr, "null_loop: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void read_answer(void) {
    uint8_t length[4];
    if (fread(length, 1, 4, stdin) != 4) die("no answer");
    head_bytes = get32(length);
    if (head_bytes > HEAD_MAX || fread(head, 1, head_bytes, stdin) != head_bytes) die("no head");
    body_bytes = fread(body, 1, BODY_MAX, stdin);
    if (messages) {
        offset_at = memmem(head, head_bytes, OFFSET, OFFSET_BYTES);
        if (!offset_at) die("an answer to a pull without its offset");
    } else {
        answers = malloc(ANSWERS_MAX * head_bytes);
        for (int i = 0; i < ANSWERS_MAX; i++) memcpy(answers + i * head_bytes, head, head_bytes);
    }
}

static void map_log(const char *path) {
    struct stat info;
    log_fd = open(path, O_RDWR);
    if (log_fd < 0 || fstat(log_fd, &info)) die(path);
    log_bytes = info.st_size;
    log_start = mmap(NULL, log_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, log_fd, 0);
    if (log_start == MAP_FAILED) die("mmap");
    if (is_sync && !(staged = malloc(STAGED_MAX))) die("malloc");
}

/* -- a send -- */

static void keep(const uint8_t *frame, size_t bytes) {
    if (!log_start) return;
    if (is_sync) {
        if (staged_bytes + bytes > STAGED_MAX) die("too many bytes in one iteration");
        memcpy(staged + staged_bytes, frame, bytes);
        staged_bytes += bytes;
        return;
    }
    if (log_at + bytes > log_bytes) log_at = 0;
    memcpy(log_start + log_at, frame, bytes);
    log_at += bytes;
}

static void write_staged(void) {
    if (log_at + staged_bytes > log_bytes) log_at = 0;
    if (pwrite(log_fd, staged, staged_bytes, log_at) != (ssize_t)staged_bytes) die("pwrite");
    log_at += staged_bytes;
    staged_bytes = 0;
}

static void sync_staged(void) {
    if (!staged_bytes) return;
    write_staged();
    if (fdatasync(log_fd)) die("fdatasync");
}

/* -- answers -- */

static void send_all(int fd, struct iovec *parts, int count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    while (message.msg_iovlen) {
        ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd writable = {fd, POLLOUT, 0};
            poll(&writable, 1, -1);
            continue;
        }
        if (n < 0) return; /* the peer is gone; recv() closes the connection */
        while (message.msg_iovlen && (size_t)n >= message.msg_iov->iov_len) {
            n -= message.msg_iov->iov_len;
            message.msg_iov++, message.msg_iovlen--;
        }
        if (message.msg_iovlen) {
            message.msg_iov->iov_base = (uint8_t *)message.msg_iov->iov_base + n;
            message.msg_iov->iov_len -= n;
        }
    }
}

static void answer_pull(struct connection *c) {
    char digits[OFFSET_BYTES + 1];
    uint8_t *from = body;
    c->offset += messages;
    snprintf(digits, sizeof digits, "%0*llu", OFFSET_BYTES, (unsigned long long)c->offset);
    memcpy(offset_at, digits, OFFSET_BYTES);
    if (log_start) {
        if (log_at + body_bytes > log_bytes) log_at = 0;
        from = log_start + log_at;
        log_at += body_bytes;
    }
    struct iovec parts[] = {{head, head_bytes}, {from, body_bytes}};
    send_all(c->fd, parts, 2);
}

static void answer(struct connection *c) {
    while (c->owed && messages) answer_pull(c), c->owed--;
    while (c->owed) {
        uint32_t count = c->owed < ANSWERS_MAX ? c->owed : ANSWERS_MAX;
        struct iovec part = {answers, count * head_bytes};
        send_all(c->fd, &part, 1);
        c->owed -= count;
    }
}

/* -- requests -- */

static void forget(struct connection *c) {
    free(c->in);
    free(c);
}

/* Returns 0 for a closed connection. */
static int receive(struct connection *c) {
    ssize_t n = recv(c->fd, c->in + c->in_bytes, IN_BYTES - c->in_bytes, 0);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return 1;
        close(c->fd);
        c->fd = -1;
        if (!c->waits) forget(c);
        return 0;
    }
    c->in_bytes += n;
    uint8_t *at = c->in, *end = c->in + c->in_bytes;
    while (end - at >= 4 && (size_t)(end - at) >= 4 + (size_t)get32(at)) {
        size_t bytes = 4 + (size_t)get32(at);
        if (!messages) keep(at, bytes);
        at += bytes;
        c->owed++;
    }
    c->in_bytes = end - at;
    if (c->in_bytes == IN_BYTES) die("a request exceeds the buffer");
    if (at > c->in && c->in_bytes) memmove(c->in, at, c->in_bytes);
    if (!is_sync) answer(c);
    return 1;
}

/* -- flushes by a thread -- */

static void *flush_when_asked(void *unused) {
    uint64_t count;
    for (;;) {
        if (read(asked_fd, &count, sizeof count) != sizeof count) die("read");
        if (fdatasync(log_fd)) die("fdatasync");
        count = 1;
        if (write(done_fd, &count, sizeof count) != sizeof count) die("write");
    }
    return unused;
}

static void start_thread(void) {
    pthread_t thread;
    struct epoll_event event = {EPOLLIN, {.ptr = &done_fd}};
    asked_fd = eventfd(0, 0);
    done_fd = eventfd(0, 0);
    if (asked_fd < 0 || done_fd < 0) die("eventfd");
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, done_fd, &event)) die("epoll_ctl");
    if (pthread_create(&thread, NULL, flush_when_asked, NULL)) die("pthread_create");
}

static void wait_for_flush(struct connection *c) {
    if (!c->owed) return;
    if (written->count == WAITING_MAX) die("too many reads wait for a flush");
    written->of[written->count].c = c;
    written->of[written->count++].owed = c->owed;
    c->owed = 0;
    c->waits++;
}

static void flush_written(void) {
    uint64_t count = 1;
    struct group *next = flushing;
    if (is_flushing || !written->count) return;
    flushing = written;
    written = next;
    is_flushing = 1;
    if (write(asked_fd, &count, sizeof count) != sizeof count) die("write");
}

static void answer_flushed(void) {
    uint64_t count;
    static struct group done;
    if (read(done_fd, &count, sizeof count) != sizeof count) die("read");
    done.count = flushing->count;
    memcpy(done.of, flushing->of, done.count * sizeof *done.of);
    flushing->count = is_flushing = 0;
    flush_written(); /* the disk works while the loop answers */
    for (int i = 0; i < done.count; i++) {
        struct connection *c = done.of[i].c;
        c->owed = done.of[i].owed;
        c->waits--;
        answer(c);
        if (c->fd < 0 && !c->waits) forget(c);
    }
}

static void accept_one(int listener) {
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    struct connection *c = calloc(1, sizeof *c);
    if (!c || !(c->in = malloc(IN_BYTES))) die("malloc");
    c->fd = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {EPOLLIN, {.ptr = c}};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
}

static int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (void *)&address, size) || listen(fd, 1024)) die("listen");
    if (getsockname(fd, (void *)&address, &size)) die("getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 4) die("MESSAGES LOG SYNC");
    messages = strtoul(argv[1], NULL, 10);
    is_sync = atoi(argv[3]);
    read_answer();
    if (strcmp(argv[2], "-")) map_log(argv[2]);
    else if (is_sync) die("SYNC needs a LOG");
    poll_fd = epoll_create1(0);
    int listener = listen_on_loopback();
    struct epoll_event event = {EPOLLIN, {.ptr = NULL}}, events[EVENTS_MAX];
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event)) die("epoll_ctl");
    if (is_sync == BY_THREAD) start_thread();
    for (;;) {
        struct connection *waiting[EVENTS_MAX];
        int count = epoll_wait(poll_fd, events, EVENTS_MAX, -1), waiters = 0;
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) accept_one(listener);
            else if ((void *)c == &done_fd) answer_flushed();
            else if (!receive(c)) continue;
            else if (is_sync == BY_THREAD) wait_for_flush(c);
            else if (is_sync) waiting[waiters++] = c;
        }
        if (is_sync == BY_THREAD) {
            if (staged_bytes) write_staged();
            flush_written();
            continue;
        }
        sync_staged();
        for (int i = 0; i < waiters; i++) answer(waiting[i]);
    }
}
