my ($calls, %count, @lines, $matches, $bytes);
$calls = sub { my $n = shift; $n < 2 ? $n : $calls->($n - 1) + $calls->($n - 2) };
open my $in, '<', $ARGV[0] or die;
while (my $line = <$in>) {
    chomp $line;
    my @words = split /[ ,]+/, $line;
    for my $word (@words) {
        $count{$word}++;
        $matches++ if $word =~ /^([a-f]\w*?)(\d+)$/ && length($1) > 3;
    }
    (my $key = uc substr $line, 4, 20) =~ s/([AEIOU]+)/<$1>/g;
    push @lines, { key => $key, n => scalar @words, text => sprintf('%05d:%-10s', $., $words[1] // '') };
}
@lines = sort { $a->{n} <=> $b->{n} or $a->{key} cmp $b->{key} } @lines;
$bytes += length join ',', map { $_->{text} } grep { $_->{n} % 3 } @lines;
my $sum = bless { value => 0 }, 'Sum';
$sum->add($_) for 1 .. 60000;
print scalar(keys %count), " $matches $bytes ", $calls->(19), " $sum->{value} $lines[5]{text}\n";
package Sum;
sub add { my ($self, $n) = @_; $self->{value} += $n * 2 % 7; $self }
