# Functions of OpenSSL's libcrypto, found at run time. `library` of find_functions is the file of a
# loaded library which depends on libcrypto; the result is false without all functions.
from libc.stddef cimport size_t

cdef extern from *:
    """
    #include <dlfcn.h>
    #include <stddef.h>

    /* The declarations of openssl/evp.h, with void in place of OpenSSL's types. */
    #define GANTRY_LIBCRYPTO(name, type, arguments) static type (*gantry_##name) arguments;
    #define GANTRY_LIBCRYPTO_ALL(X) \\
        X(EVP_MD_CTX_new, void *, (void)) \\
        X(EVP_MD_CTX_free, void, (void *)) \\
        X(EVP_MD_CTX_copy_ex, int, (void *, const void *)) \\
        X(EVP_sha1, const void *, (void)) \\
        X(EVP_DigestInit_ex, int, (void *, const void *, void *)) \\
        X(EVP_DigestUpdate, int, (void *, const void *, size_t)) \\
        X(EVP_DigestFinal_ex, int, (void *, unsigned char *, unsigned int *))
    GANTRY_LIBCRYPTO_ALL(GANTRY_LIBCRYPTO)

    static int gantry_find_functions(const char *library) {
        /* Symbols are also searched in the libraries that the library depends on. */
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle) return 0;
    #define GANTRY_FIND(name, type, arguments) \\
        if (!(*(void **)&gantry_##name = dlsym(handle, #name))) return 0;
        GANTRY_LIBCRYPTO_ALL(GANTRY_FIND)
        return 1;
    }
    """
    bint find_functions "gantry_find_functions" (const char *library)
    void *EVP_MD_CTX_new "gantry_EVP_MD_CTX_new" () noexcept nogil
    void EVP_MD_CTX_free "gantry_EVP_MD_CTX_free" (void *context) noexcept nogil
    int EVP_MD_CTX_copy_ex "gantry_EVP_MD_CTX_copy_ex" (void *to, const void *context) noexcept nogil
    const void *EVP_sha1 "gantry_EVP_sha1" () noexcept nogil
    int EVP_DigestInit_ex "gantry_EVP_DigestInit_ex" (
        void *context, const void *kind, void *engine) noexcept nogil
    int EVP_DigestUpdate "gantry_EVP_DigestUpdate" (
        void *context, const void *bytes, size_t count) noexcept nogil
    int EVP_DigestFinal_ex "gantry_EVP_DigestFinal_ex" (
        void *context, unsigned char *digest, unsigned int *count) noexcept nogil
