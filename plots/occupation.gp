# plots/occupation.gp - columns of `data`: policy, time, busy GPUs (percent), jobs that wait.
width = 1200
height = 760
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.975
set datafile columnheaders
array colours[9] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#8C564B', '#7F7F7F']
array dashes[9] = [1, 2, 4, 5, 3, 1, 2, 4, 5]
title_of(i) = value(sprintf('name%d', i))
of(i, column_at) = column(1) == i ? column(column_at) : NaN
set multiplot
set xrange [0:end]
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set tmargin at screen 1.0 - 112.0/height
set bmargin at screen 0.5
set yrange [0:105]
set format x ''
set ylabel 'GPUs held (%)' textcolor rgb ink
set key at screen 0.07, screen 1.0 - 64.0/height left top horizontal reverse Left samplen 2 maxrows 1 textcolor rgb ink
plot for [i=0:policies-1] data using (of(i, 2)):3 with lines lw 2 dt dashes[i % 9 + 1] lc rgb colours[i % 9 + 1] title title_of(i)
unset label 1
unset label 2
unset key
set tmargin at screen 0.46
set bmargin at screen 66.0/height
set yrange [0:most < 5 ? 5 : 1.05 * most]
set format x '%g'
set format y '%.0f'
set ylabel 'jobs waiting' textcolor rgb ink
set xlabel 'time (' . unit . ')' textcolor rgb ink
plot for [i=0:policies-1] data using (of(i, 2)):4 with lines lw 2 dt dashes[i % 9 + 1] lc rgb colours[i % 9 + 1] notitle
unset multiplot
