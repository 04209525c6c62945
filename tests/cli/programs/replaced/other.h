unsigned mixed(unsigned a, unsigned b);
int other_sum(int k);
