/* tests/gpu/test_transformer_engine.cc - Transformer Engine itself, where it is installed: without a GPU, what can be asked
 * of its tensors. Shapes that go in come out again, so their layout and the numbers of types are those of kernels/te.h.
 */
#include "kernels/te.h"

#include <initializer_list>
#include <stdio.h>

static int failures;

static void expect(bool ok, const char *what)
{
    printf("%s %s\n", ok ? "ok    " : "FAILED", what);
    failures += !ok;
}

int main()
{
    char text[200] = "";
    TeLibrary te;
    if (!te_load(&te, text, sizeof text)) {
        printf("skipped: Transformer Engine %s\n", text);
        return 77;
    }
    expect(krn_te_version(text, sizeof text), text);
    unsigned char memory[16];
    for (const TeType type : {TE_BYTE, TE_F32, TE_BF16, TE_E4M3, TE_E8M0}) {
        static const size_t bits[] = {8, 0, 0, 0, 32, 0, 16, 8, 0, 8};
        size_t (*size_bits)(TeTensor) = nullptr;
        void *(*data_of)(TeTensor) = nullptr;
        const bool found = te_find(&te, "nvte_tensor_data", &data_of);
        TeTensor tensor = te.create(TE_SCALE_OF_TENSOR);
        const TeBuffer buffer = {memory, type, {{6, 160}, 2}};
        te.set(&tensor, TE_DATA, &buffer);
        const TeShape shape = te.shape(tensor);
        expect(shape.ndim == 2 && shape.data[0] == 6 && shape.data[1] == 160, "a shape comes out as it went in");
        expect(found && data_of(tensor) == memory, "and so do the data");
        if (te_find(&te, "nvte_tensor_element_size_bits", &size_bits)) /* since 2.6 */
            expect(size_bits(tensor) == bits[type], "the type is as wide as it should be");
        te.destroy(tensor);
    }
    TeTensor blocks = te.create(TE_SCALES_OF_32);
    int (*scaling_of)(TeTensor) = nullptr;
    expect(te_find(&te, "nvte_tensor_scaling_mode", &scaling_of) && scaling_of(blocks) == TE_SCALES_OF_32,
           "a tensor of scales of 32 says so");
    te.destroy(blocks);
    printf("%d failed\n", failures);
    return failures > 0;
}
