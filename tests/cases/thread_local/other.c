__thread unsigned initial = 7;
__thread unsigned elsewhere[4] = {1, 2, 3, 4};
unsigned *elsewhere_at(unsigned i) { return &elsewhere[i]; }
