# Syncing the data of a file, and of its metadata what is needed to read it.
cdef extern from *:
    """
    #include <unistd.h>

    static int gantry_sync_data(int descriptor) {
    #ifdef __linux__
        return fdatasync(descriptor);
    #else
        return fsync(descriptor);
    #endif
    }
    """
    int sync_data "gantry_sync_data" (int descriptor) nogil
