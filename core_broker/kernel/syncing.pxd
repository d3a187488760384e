# Syncing the data of a file, with the metadata that readers need.
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
