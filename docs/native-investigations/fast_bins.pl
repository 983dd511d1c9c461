# A Perl that freed small values one by one: each is a chunk in a fast bin, and nothing joins them.
# It reads and writes without buffers of its own: to make one of 8 KiB would join them all.
my %kept = map { ($_ => "x" x ($_ % 40)) } 1 .. 200_000;
for my $number (1 .. 200_000) { delete $kept{$number} if $number % 4 }
syswrite STDOUT, scalar(keys %kept) . " values are kept\n";
sysread STDIN, my $answer, 1;
