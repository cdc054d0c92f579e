# plots/goodput.gp - columns of `data`: series, GPUs, goodput: mean, low, high (percent), own (1 or 0).
width = 1200
height = 640
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.96
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set datafile columnheaders
array colours[6] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9']
title_of(i) = value(sprintf('name%d', i))
of(i, what) = column('series') == i ? column(what) : NaN
set logscale x 2
set xtics ()
do for [k=0:24:2] { set xtics add (grouped(2**k) 2**k) }
set xtics scale 0.5
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set yrange [(least > 4 ? floor(least) - 4 : 0):100]
set ylabel 'goodput (%)' textcolor rgb ink
set xlabel 'GPUs' textcolor rgb ink
set key at graph 0.02, graph 0.05 left bottom vertical reverse Left samplen 2 textcolor rgb ink
set style fill transparent solid 0.18 noborder
plot for [i=0:series-1] data using (of(i, 'gpus')):(of(i, 'low_percent')):(of(i, 'high_percent')) with filledcurves lc rgb colours[i % 6 + 1] notitle, \
     for [i=0:series-1] data using (of(i, 'gpus')):(of(i, 'mean_percent')) with linespoints pt 7 ps 0.9 lw 2 lc rgb colours[i % 6 + 1] title title_of(i), \
     data using (column('own') == 1 ? column('gpus') : NaN):'mean_percent' with points pt 6 ps 2.6 lw 2 lc rgb ink notitle
