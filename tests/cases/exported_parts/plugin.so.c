typedef unsigned function(unsigned);
unsigned branches(unsigned x), cases(unsigned x), step(unsigned x), first_name(unsigned x), second_name(unsigned x);
/* The program's is found first; called by an address that no compiler knows, or it would take this one. */
unsigned may_be_replaced(unsigned x) { return x + 12345; }
function *const volatile bound[] = {branches, cases, step, first_name, second_name, may_be_replaced};
unsigned run(unsigned x) {
    return branches(x) + cases(x + 1) + step(x) + first_name(x) + second_name(x) + bound[5](x);
}
