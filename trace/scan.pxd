# C types for trace/scan.py.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef bytes _NAMES, _NAME_BEGINS, _FIELDS_MIN, _TEXT_FIELDS, _NUMBER_FIELDS, _FLAG_FIELDS
cdef int32_t _SUB_AFTER, _BROKEN
cdef uint64_t _NUMBER_MAX, _HASH_FIRST, _HASH_FACTOR, _HASH_MASK

@cython.locals(fields_min="const unsigned char *", fields=int32_t[::1], count=Py_ssize_t, message=Py_ssize_t, broken=int32_t,
               at=int32_t, end=int32_t, index=int32_t, stop=int32_t, found=int32_t, kind=int32_t, reason=int32_t, place=int32_t)
cpdef Py_ssize_t scan_bodies(const unsigned char[::1] data, const int32_t[::1] offsets, int32_t[::1] heads, int32_t[::1] spans, int64_t[::1] numbers) except -1

@cython.locals(found=int32_t, stop=int32_t)
cdef int32_t _split(const unsigned char[::1] data, int32_t at, int32_t end, int32_t[::1] fields) except -1

@cython.locals(text_fields="const unsigned char *", number_fields="const unsigned char *", flag_fields="const unsigned char *",
               is_old=bint, is_sub_after=bint, bits=int32_t, place=int32_t, field=int32_t, to=Py_ssize_t, begin=int32_t, stop=int32_t)
cdef int32_t _read(const unsigned char[::1] data, int32_t[::1] fields, int32_t found, int32_t kind, Py_ssize_t record,
                   int32_t[::1] heads, int32_t[::1] spans, int64_t[::1] numbers) except -1

@cython.locals(broken=int32_t, names="const unsigned char *", begins="const unsigned char *", kind=int32_t, first=int32_t, length=int32_t, at=int32_t)
cdef int32_t _kind_of(const unsigned char[::1] data, int32_t begin, int32_t stop) except -1
cdef bint _is_null(const unsigned char[::1] data, int32_t begin, int32_t stop) noexcept
cdef bint _is_true(const unsigned char[::1] data, int32_t begin, int32_t stop) noexcept
@cython.locals(is_negative=bint, value=uint64_t, at=int32_t, digit=int32_t)
cdef bint _is_number(const unsigned char[::1] data, int32_t begin, int32_t stop, int64_t[::1] numbers, Py_ssize_t to) noexcept
@cython.locals(to=int32_t, record=Py_ssize_t, begin=int32_t, at=int32_t)
cpdef copy_texts(const unsigned char[::1] data, int32_t[::1] spans, Py_ssize_t place, Py_ssize_t count, int32_t[::1] begins, unsigned char[::1] texts)

@cython.locals(text=Py_ssize_t, value=uint64_t, at=int32_t)
cpdef hash_texts(const unsigned char[::1] data, const int32_t[::1] offsets, uint64_t[::1] hashes)
