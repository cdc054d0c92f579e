/* calibrate/measure/libraries.h - NCCL, loaded when the program runs, so that it starts where there is none.
 *
 * The functions and numbers below are the library's stable binary interface; its header is not needed to build.
 * Source: [NCCL]
 */
#ifndef ORR_CALIBRATE_LIBRARIES_H
#define ORR_CALIBRATE_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status 0 is success; types and operations as nccl.h numbers them. */
enum { CAL_NCCL_FLOAT = 7, CAL_NCCL_SUM = 0 };
typedef void *CalNcclComm;
/* Made by one rank, brought to the others by the team's own lines. */
typedef struct CalNcclId {
    char bytes[128];
} CalNcclId;

typedef struct CalNccl {
    void *library;
    int version; /* 22907: 2.29.7 */
    int (*comm_init_all)(CalNcclComm *comms, int count, const int *devices);
    int (*unique_id)(CalNcclId *ret_id);
    int (*comm_init_rank)(CalNcclComm *comm, int ranks, CalNcclId id, int rank);
    int (*comm_destroy)(CalNcclComm comm);
    int (*comm_abort)(
        CalNcclComm comm); /* ends what is under way: a rank that is gone is waited for for ever */
    int (*group_start)(void), (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, CalNcclComm comm,
                      void *stream);
    int (*all_gather)(const void *from, void *to, size_t count, int type, CalNcclComm comm, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t count, int type, int op, CalNcclComm comm,
                          void *stream);
    int (*broadcast)(const void *from, void *to, size_t count, int type, int root, CalNcclComm comm,
                     void *stream);
    int (*reduce)(const void *from, void *to, size_t count, int type, int op, int root, CalNcclComm comm,
                  void *stream);
    int (*send)(const void *from, size_t count, int type, int peer, CalNcclComm comm, void *stream);
    int (*receive)(void *to, size_t count, int type, int peer, CalNcclComm comm, void *stream);
    const char *(*error_text)(int status);
} CalNccl;

/* First version that lets several ranks share a GPU (NCCL_MULTI_RANK_GPU_ENABLE=1). Source: [NCCL] */
#define CAL_NCCL_SHARED_GPU_VERSION 23003

/* A shared library by its usual name, or the file that the environment's `variable` names; NULL with one sentence. */
void *cal_library_open(const char *variable, const char *name, char *reason, size_t reason_size);
/* A function by name into the pointer at `at`; false: the library has none. */
bool cal_library_find(void *library, const char *name, void *at);

/* Looks for libnccl.so.2, or $ORRERY_NCCL. False with one sentence. */
bool cal_nccl_load(CalNccl *ret_nccl, char *reason, size_t reason_size);
void cal_nccl_unload(CalNccl *nccl);
void cal_nccl_version_text(int version, char *text, size_t size); /* "2.29.7" */

#ifdef __cplusplus
}
#endif

#endif
