/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <dlfcn.h>

#include "symbols/demangle.h"

static void assert_short(const char *full, const char *expected)
{
    char *text = ttm_demangle_shorten(full);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void arguments_and_return_types_are_left_out(void **state)
{
    (void)state;
    assert_short("main", "main");
    assert_short("_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault");
    assert_short("ttnn::operations::matmul::matmul(tt::tt_metal::Tensor const&, "
                 "std::optional<tt::tt_metal::Tensor const> const&, bool)",
                 "ttnn::operations::matmul::matmul");
    assert_short("void tt::stl::run<int, std::vector<int, std::allocator<int> > >(int&&)",
                 "tt::stl::run");
    assert_short("std::vector<int, std::allocator<int> >::push_back(int const&)",
                 "std::vector::push_back");
    assert_short("decltype(auto) ttnn::invoke<(ttnn::Kind)3>(int)", "ttnn::invoke");
    assert_short("tt::Buffer::size() const", "tt::Buffer::size");
    assert_short("tt::Buffer::take() const &&", "tt::Buffer::take");
    assert_short("tt::Buffer::take() volatile", "tt::Buffer::take");
    assert_short("foo(int) [clone .cold]", "foo");
    assert_short("foo[abi:cxx11](int)", "foo");
    assert_short("unsigned long foo<(char)60>(int)", "foo");
}

static void lambdas_and_anonymous_namespaces_stay_readable(void **state)
{
    (void)state;
    assert_short("ttnn::zeros(int)::{lambda(auto:1)#2}::operator()(int) const",
                 "ttnn::zeros::{lambda#2}::operator()");
    assert_short("(anonymous namespace)::helper(int)", "(anonymous)::helper");
    assert_short("void tt::(anonymous namespace)::helper<int>(int)", "tt::(anonymous)::helper");
    assert_short("foo()::{unnamed type#1}::bar()", "foo::{unnamed type#1}::bar");
    assert_short("std::_Function_handler<void (int), foo()::{lambda(int)#1}>::_M_invoke(int&&)",
                 "std::_Function_handler::_M_invoke");
}

static void operators_keep_their_signs(void **state)
{
    (void)state;
    assert_short("Matrix::operator()(int, int) const", "Matrix::operator()");
    assert_short("Matrix::operator[](unsigned long)", "Matrix::operator[]");
    assert_short("std::ostream& operator<< <std::char_traits<char> >(std::ostream&, char)",
                 "operator<<");
    assert_short("bool operator< <int>(A<int> const&, A<int> const&)", "operator<");
    assert_short("auto A::operator<=>(A const&) const", "A::operator<=>");
    assert_short("P<int>::operator->() const", "P::operator->");
    assert_short("A::operator&(A const&) const", "A::operator&");
    assert_short("A::operator bool() const", "A::operator bool");
    assert_short("operator new(unsigned long)", "operator new");
    assert_short("operator_name(int)", "operator_name");
    assert_short("my_operator(int)", "my_operator");
    assert_short("void f<&A::operator<< >(int)", "f");
    assert_short("void f<&A::operator()>(int)", "f");
}

/* As clang 17 and later mangle constraints; libstdc++ 12 cannot read them. */
static void names_that_cannot_be_demangled_are_read_as_far_as_they_are_plain(void **state)
{
    (void)state;
    assert_short("_ZN4ttnn16device_operation6detail6launchITkNS0_22DeviceOperationConceptENS_4prim"
                 "21TilizeDeviceOperationEEENT_21tensor_return_value_tE",
                 "ttnn::device_operation::detail::launch…");
    assert_short("_ZZN7reflect6v1_2_58for_eachIZN4ttsl4hash6detail11hash_objectIN4ttnn",
                 "reflect::v1_2_5::for_each…");
    assert_short("_ZN4ttnn12_GLOBAL__N_13fooEXX", "ttnn::(anonymous)::foo");
    assert_short("_ZNK4ttnn6Tensor4sizeEXX", "ttnn::Tensor::size");
    assert_short("_ZN4ttnn6TensorC2EXX", "ttnn::Tensor::Tensor");
    assert_short("_ZN4ttnn6TensorD1EXX", "ttnn::Tensor::~Tensor");
    assert_short("_ZNSt6vectorIXX", "std::vector…");
    assert_short("_Z3fooITkXX", "foo…");
    assert_short("_Z3fooXX", "foo");
    assert_short("_ZN3fooB5cxx113barEXX", "foo::bar");
    assert_short("_ZTV3foo", "_ZTV3foo");
    assert_short("_Z", "_Z");
    assert_short("_Z9999foo", "_Z9999foo");
    assert_short("_ZN", "_ZN");
    assert_short("_ZN16aaaaaaaaaaaaaaaaC1C1C1C1C1C1C1C1E", "aaaaaaaaaaaaaaaa::aaaaaaaaaaaaaaaa…");
}

static void text_that_is_no_name_comes_back_in_some_form(void **state)
{
    static const char *const odd[] = {
        "",     "<",  "(", ")", "<>",         "((((", "operator", "operator<",  "a b c ", " ",
        "foo<", "->", "{", "}", "x operator", "&",    "foo)",     "a<operator", "a<b->"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        struct bytes exact = bytes_of(odd[i], strlen(odd[i]) + 1);
        char *text = ttm_demangle_shorten((const char *)exact.data);
        assert_non_null(text);
        assert_true(strlen(text) <= strlen(odd[i]));
        free(text);
        bytes_done(&exact);
    }
}

static void random_text_breaks_nothing(void **state)
{
    static const char alphabet[] = "ab:<>()[]{} operator-&*~,const";
    uint64_t random = 99;
    (void)state;

    for (int i = 0; i < 20000; i++) {
        char text[64];
        const size_t length = random_below(&random, sizeof(text) - 1);
        for (size_t k = 0; k < length; k++)
            text[k] = alphabet[random_below(&random, sizeof(alphabet) - 1)];
        text[length] = '\0';
        if (i % 4 == 0) { /* mangled, or nearly so */
            for (size_t k = 0; k < length; k++)
                text[k] = "_ZNSt12345IECDBL"[random_below(&random, 16)];
            memcpy(text, "_Z", length < 2 ? length : 2);
        }
        struct bytes exact = bytes_of(text, length + 1);
        char *cut = ttm_demangle_shorten((const char *)exact.data);
        assert_non_null(cut);
        assert_true(i % 4 == 0 || strlen(cut) <= length);
        free(cut);
        bytes_done(&exact);
    }
}

static void mangled_names_are_demangled_and_others_left_alone(void **state)
{
    static const char *const same[] = {"main", "i", "_Z", "_ZN4ttnn", ""};
    char *text, longer[TTM_DEMANGLE_MAX + 10];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(same); i++) {
        text = ttm_demangle(same[i]);
        assert_string_equal(text, same[i]);
        free(text);
    }
    memset(longer, 'x', sizeof(longer));
    memcpy(longer, "_Z9999", 6);
    longer[sizeof(longer) - 1] = '\0';
    text = ttm_demangle(longer);
    assert_string_equal(text, longer);
    free(text);

    if (!dlopen("libstdc++.so.6", RTLD_LAZY)) {
        print_message("needs libstdc++.so.6\n");
        skip();
    }
    text = ttm_demangle("_ZN4ttnn10operations6matmul6matmulERKi");
    assert_string_equal(text, "ttnn::operations::matmul::matmul(int const&)");
    free(text);
}

static void without_memory_there_is_no_name(void **state)
{
    (void)state;
    faults_begin(0);
    assert_null(ttm_demangle_shorten("foo(int)"));
    assert_true(faults_end());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_and_return_types_are_left_out),
        cmocka_unit_test(lambdas_and_anonymous_namespaces_stay_readable),
        cmocka_unit_test(operators_keep_their_signs),
        cmocka_unit_test(names_that_cannot_be_demangled_are_read_as_far_as_they_are_plain),
        cmocka_unit_test(text_that_is_no_name_comes_back_in_some_form),
        cmocka_unit_test(random_text_breaks_nothing),
        cmocka_unit_test(mangled_names_are_demangled_and_others_left_alone),
        cmocka_unit_test(without_memory_there_is_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
