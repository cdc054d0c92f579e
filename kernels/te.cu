/* kernels/te.cu - the library of Transformer Engine: where it lies, its functions, its version as pip wrote it down. */
#include "kernels/te.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the library's header is there, what te.h says is held against it. */
#if !defined(KRN_EMULATED) && __has_include(<transformer_engine/transformer_engine.h>)
#include <transformer_engine/transformer_engine.h>
static_assert(sizeof(NVTEShape) == sizeof(TeShape) && sizeof(NVTEBasicTensor) == sizeof(TeBuffer) &&
                  offsetof(NVTEBasicTensor, shape) == offsetof(TeBuffer, shape) &&
                  offsetof(NVTEShape, ndim) == offsetof(TeShape, ndim),
              "Transformer Engine's shapes are others");
static_assert(kNVTEByte == (int)TE_BYTE && kNVTEFloat32 == (int)TE_F32 && kNVTEBFloat16 == (int)TE_BF16 &&
                  kNVTEFloat8E4M3 == (int)TE_E4M3 && kNVTEFloat8E8M0 == (int)TE_E8M0,
              "Transformer Engine's types have other numbers");
static_assert(NVTE_DELAYED_TENSOR_SCALING == (int)TE_SCALE_OF_TENSOR &&
                  NVTE_MXFP8_1D_SCALING == (int)TE_SCALES_OF_32 && kNVTERowwiseData == (int)TE_DATA &&
                  kNVTEColumnwiseData == (int)TE_COLUMN_DATA && kNVTEScale == (int)TE_SCALE &&
                  kNVTEAmax == (int)TE_AMAX && kNVTERowwiseScaleInv == (int)TE_INVERSE_SCALE &&
                  kNVTEColumnwiseScaleInv == (int)TE_COLUMN_INVERSE_SCALE,
              "Transformer Engine's parts of a tensor have other numbers");
#endif

static const char *library_name()
{
    const char *chosen = getenv("ORRERY_TRANSFORMER_ENGINE");
    return chosen != nullptr ? chosen : "libtransformer_engine.so";
}

bool te_find(const TeLibrary *library, const char *name, void *at)
{
    void *symbol = dlsym(library->file, name);
    memcpy(at, &symbol, sizeof symbol);
    return symbol != nullptr;
}

static bool find_all(TeLibrary *te)
{
    const struct {
        const char *name;
        void *at;
    } functions[] = {
        {"nvte_create_tensor", &te->create},
        {"nvte_destroy_tensor", &te->destroy},
        {"nvte_set_tensor_param", &te->set},
        {"nvte_tensor_shape", &te->shape},
        {"nvte_rmsnorm_fwd", &te->rms_norm},
        {"nvte_rmsnorm_bwd", &te->rms_norm_backward},
        {"nvte_layernorm_fwd", &te->layer_norm},
        {"nvte_layernorm_bwd", &te->layer_norm_backward},
        {"nvte_swiglu", &te->swiglu},
        {"nvte_dswiglu", &te->swiglu_backward},
        {"nvte_quantize", &te->quantize},
    };
    for (const auto &function : functions)
        if (!te_find(te, function.name, function.at))
            return false;
    return true;
}

/* The library calls CUDA's compiler at run time without naming it, so that one comes first, as its Python does it. Bound as
 * called: of the hundreds of functions that it wants of cuBLASLt and cuDNN, a few newer than the user's are not our
 * business. */
static void *open_library()
{
    static const char *const compilers[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    void *compiler = nullptr;
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers && compiler == nullptr; i++)
        compiler = dlopen(compilers[i], RTLD_NOW | RTLD_GLOBAL);
    return dlopen(library_name(), RTLD_LAZY | RTLD_LOCAL);
}

bool te_load(TeLibrary *ret_library, char *why, size_t size)
{
    TeLibrary te = {};
    void *layout = nullptr;
    te.file = open_library();
    if (te.file == nullptr) {
        snprintf(why, size, "cannot be loaded: %.120s (ORRERY_TRANSFORMER_ENGINE names another file)",
                 dlerror());
        return false;
    }
    if (!te_find(&te, "nvte_make_shape", &layout) || !find_all(&te)) {
        snprintf(why, size, "is older than 2.4, whose shapes and types are others");
        dlclose(te.file);
        return false;
    }
    *ret_library = te;
    return true;
}

/* --- version --- */

#define DIST_INFO ".dist-info"

/* "transformer_engine_cu12-2.20.2.dist-info": what lies between the last minus and the ending. */
static bool version_of(const char *entry, char *text, size_t size)
{
    const size_t length = strlen(entry), ending = strlen(DIST_INFO);
    if (strncmp(entry, "transformer_engine", strlen("transformer_engine")) != 0 || length <= ending ||
        strcmp(entry + length - ending, DIST_INFO) != 0)
        return false;
    const char *minus = entry + length - ending;
    while (minus > entry && *minus != '-')
        minus--;
    if (*minus != '-')
        return false;
    snprintf(text, size, "%.*s", (int)(entry + length - ending - minus - 1), minus + 1);
    return true;
}

/* The folder of packages is one of those above the library. */
static bool find_version(char *folder, char *text, size_t size)
{
    bool found = false;
    for (int above = 0; above < 3 && !found; above++) {
        char *slash = strrchr(folder, '/');
        if (slash == nullptr)
            return false;
        *slash = '\0';
        DIR *dir = opendir(folder);
        for (struct dirent *entry = dir != nullptr ? readdir(dir) : nullptr; entry != nullptr && !found;
             entry = readdir(dir))
            found = version_of(entry->d_name, text, size);
        if (dir != nullptr)
            closedir(dir);
    }
    return found;
}

bool krn_te_version(char *text, size_t size)
{
    char path[PATH_MAX] = "";
    Dl_info info;
    TeLibrary te;
    if (!te_load(&te, text, size))
        return false;
    snprintf(text, size, "2.4 or later");
    if (dladdr((void *)te.create, &info) != 0 && realpath(info.dli_fname, path) != nullptr)
        find_version(path, text, size);
    return true;
}
