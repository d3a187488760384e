/* The bytes of a connection: as they are, or in TLS 1.3 when compiled with -DTLS.
 *
 * TLS has one cipher for all brokers, and certificates are not verified. Needs OpenSSL (-lssl
 * -lcrypto). Reads and writes behave as recv() and send() of a socket that does not block. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/types.h>

static void die(const char *what);

#ifndef TLS

struct transport {
    int fd;
};

static void begin_tls(struct transport *t) {
    (void)t;
}

static ssize_t read_some(struct transport *t, void *to, size_t bytes) {
    return recv(t->fd, to, bytes, 0);
}

static ssize_t write_some(struct transport *t, const void *from, size_t bytes) {
    return send(t->fd, from, bytes, MSG_NOSIGNAL);
}

/* Whether there are bytes that epoll does not know. */
static int has_more(struct transport *t) {
    (void)t;
    return 0;
}

#else

#include <openssl/ssl.h>
#include <signal.h>

#define TLS_CIPHER "TLS_AES_128_GCM_SHA256"
#define TLS_READ_BYTES (256 << 10)

struct transport {
    int fd;
    SSL *ssl;
};

static SSL_CTX *new_context(void) {
    SSL_CTX *made = SSL_CTX_new(TLS_client_method());
    if (!made || !SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(made, TLS_CIPHER))
        die("no TLS 1.3");
    SSL_CTX_set_verify(made, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, TLS_READ_BYTES);
    signal(SIGPIPE, SIG_IGN);
    return made;
}

/* Shake hands; the socket still blocks. */
static void begin_tls(struct transport *t) {
    static SSL_CTX *context;
    if (!context) context = new_context();
    t->ssl = SSL_new(context);
    if (!t->ssl || !SSL_set_fd(t->ssl, t->fd) || SSL_connect(t->ssl) != 1)
        die("the TLS handshake failed");
}

static ssize_t outcome(struct transport *t, int result) {
    if (result > 0) return result;
    int why = SSL_get_error(t->ssl, result);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) errno = EAGAIN;
    else if (!errno || errno == EAGAIN) errno = EPROTO;
    return -1;
}

static ssize_t read_some(struct transport *t, void *to, size_t bytes) {
    return outcome(t, SSL_read(t->ssl, to, bytes));
}

static ssize_t write_some(struct transport *t, const void *from, size_t bytes) {
    return outcome(t, SSL_write(t->ssl, from, bytes));
}

static int has_more(struct transport *t) {
    return SSL_has_pending(t->ssl);
}

#endif

static void open_transport(struct transport *t, const char *host, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) die("HOST is no address");
    t->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (t->fd < 0 || connect(t->fd, (void *)&to, sizeof to)) die("cannot connect");
    setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    begin_tls(t);
    fcntl(t->fd, F_SETFL, O_NONBLOCK);
}
