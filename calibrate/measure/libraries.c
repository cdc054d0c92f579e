/* calibrate/measure/libraries.c - NCCL by dlopen. */
#include "calibrate/measure/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* dlsym gives an object pointer, hence the copy. */
bool cal_library_find(void *library, const char *name, void *at)
{
    void *symbol = dlsym(library, name);
    memcpy(at, &symbol, sizeof symbol);
    return symbol != NULL;
}

void *cal_library_open(const char *variable, const char *name, char *reason, size_t reason_size)
{
    const char *chosen = getenv(variable);
    void *library = dlopen(chosen != NULL ? chosen : name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(reason, reason_size, "%s is not on this machine (%s names another file)",
                 chosen != NULL ? chosen : name, variable);
    return library;
}

bool cal_nccl_load(CalNccl *ret_nccl, char *reason, size_t reason_size)
{
    CalNccl nccl = {.library = cal_library_open("ORRERY_NCCL", "libnccl.so.2", reason, reason_size)};
    int (*get_version)(int *) = NULL;
    if (nccl.library == NULL)
        return false;
    const bool ok = cal_library_find(nccl.library, "ncclGetVersion", &get_version) &&
                    cal_library_find(nccl.library, "ncclCommInitAll", &nccl.comm_init_all) &&
                    cal_library_find(nccl.library, "ncclGetUniqueId", &nccl.unique_id) &&
                    cal_library_find(nccl.library, "ncclCommInitRank", &nccl.comm_init_rank) &&
                    cal_library_find(nccl.library, "ncclCommDestroy", &nccl.comm_destroy) &&
                    cal_library_find(nccl.library, "ncclCommAbort", &nccl.comm_abort) &&
                    cal_library_find(nccl.library, "ncclGroupStart", &nccl.group_start) &&
                    cal_library_find(nccl.library, "ncclGroupEnd", &nccl.group_end) &&
                    cal_library_find(nccl.library, "ncclAllReduce", &nccl.all_reduce) &&
                    cal_library_find(nccl.library, "ncclAllGather", &nccl.all_gather) &&
                    cal_library_find(nccl.library, "ncclReduceScatter", &nccl.reduce_scatter) &&
                    cal_library_find(nccl.library, "ncclBroadcast", &nccl.broadcast) &&
                    cal_library_find(nccl.library, "ncclReduce", &nccl.reduce) &&
                    cal_library_find(nccl.library, "ncclSend", &nccl.send) &&
                    cal_library_find(nccl.library, "ncclRecv", &nccl.receive) &&
                    cal_library_find(nccl.library, "ncclGetErrorString", &nccl.error_text);
    if (!ok || get_version(&nccl.version) != 0) {
        snprintf(reason, reason_size, "this NCCL is too old: 2.7 or later has send and receive");
        dlclose(nccl.library);
        return false;
    }
    *ret_nccl = nccl;
    return true;
}

void cal_nccl_unload(CalNccl *nccl)
{
    if (nccl->library != NULL)
        dlclose(nccl->library);
    nccl->library = NULL;
}

void cal_nccl_version_text(int version, char *text, size_t size)
{
    if (version >= 10000)
        snprintf(text, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    else
        snprintf(text, size, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
}
