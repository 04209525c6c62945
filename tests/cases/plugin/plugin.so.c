typedef unsigned function(unsigned);
extern unsigned exported_count;
unsigned exported_step(unsigned x);
unsigned run(unsigned x, function *step, function *other) {
    if (step != exported_step)
        return 0;
    exported_count += 2;
    return exported_step(x) + other(step(x));
}
