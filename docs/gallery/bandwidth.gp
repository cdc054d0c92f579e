# docs/gallery/bandwidth.gp - columns of `data`: ranks, bytes, bus bandwidth (GB/s).
set ylabel 'bus bandwidth (GB/s)' textcolor rgb ink
set xlabel 'size of the all-reduce' textcolor rgb ink
set logscale x 2
set yrange [0:]
set xtics ('1 KiB' 2**10, '32 KiB' 2**15, '1 MiB' 2**20, '32 MiB' 2**25, '1 GiB' 2**30, '8 GiB' 2.0**33)
set key top left reverse Left samplen 2 textcolor rgb ink
ranks = "8 16 64 256"
array colours[4] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7']
colour(i) = colours[i]
plot for [i=1:4] data using (column(1) == int(word(ranks, i)) ? column(2) : NaN):3 with linespoints lw 2 pt 7 ps 0.8 \
     dt i lc rgb colour(i) title word(ranks, i) . ' GPUs'
