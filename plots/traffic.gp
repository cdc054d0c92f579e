# plots/traffic.gp - columns of `data`: row, tier, dimension, its number, from and to in `unit`; of `extra`: row, tier, links, used, busy in the
# mean and of the busiest link in percent.
width = 1200
height = 206 + 46 * rows
edge = 0.03
load style
set datafile columnheaders
array colours[6] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#888888']
title_of(i) = value(sprintf('name%d', i))
of(i, what) = column('colour') == i ? column(what) : NaN
set multiplot
set tmargin at screen 1.0 - 122.0/height
set bmargin at screen 76.0/height
set yrange [rows-0.5:-0.5]
set grid noytics xtics lc rgb '#E4E4E4' lw 1 lt 1
set lmargin at screen 0.2
set rmargin at screen 0.62
set xrange [0:1.04 * most]
set xlabel unit . ' a step' textcolor rgb ink
set format x '%g'
set key at screen 0.2, screen 1.0 - 72.0/height left top horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
plot for [i=0:kinds-1] data using (of(i, 'from')):'row':(of(i, 'from')):(of(i, 'to')):(column('row')-0.32):(column('row')+0.32):ytic(2) \
         with boxxyerror lc rgb colours[i % 6 + 1] title (strlen(title_of(i)) > 0 ? title_of(i) : '')
unset label 1
unset label 2
unset key
set format y ''
set lmargin at screen 0.66
set rmargin at screen 0.975
set xrange [0:1.22 * busiest]
set xlabel 'busy, % of the step' textcolor rgb ink
plot extra using (0):'row':(0):'busiest_percent':(column('row')-0.32):(column('row')+0.32) with boxxyerror lc rgb '#A8C8E4' notitle, \
     extra using (0):'row':(0):'busy_percent':(column('row')-0.32):(column('row')+0.32) with boxxyerror lc rgb '#0072B2' notitle, \
     extra using 'busiest_percent':'row':(sprintf('%.3g %%', column('busiest_percent'))) with labels left offset 0.6,0 textcolor rgb ink notitle
unset multiplot
