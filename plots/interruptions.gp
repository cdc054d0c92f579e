# plots/interruptions.gp - columns of `data`: day, cause, time of work done again, time waited (minutes), nodes away.
width = 1200
height = 760
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.96
set tmargin at screen 1.0 - 100.0/height
set multiplot
set datafile columnheaders
array colours[8] = ['#0072B2', '#56B4E9', '#D55E00', '#009E73', '#E69F00', '#CC79A7', '#332288', '#888888']
title_of(i) = value(sprintf('name%d', i))
stats data using 1 name 'days' nooutput
set xrange [0:days_max * 1.02]
set bmargin at screen 0.42
set format x ''
set yrange [0:most_min * 1.15]
set ylabel 'minutes lost' textcolor rgb ink
set key at screen 0.07, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 2 width (causes > 5 ? 0 : 5) maxrows 1 textcolor rgb ink
plot for [i=0:causes-1] data using (column('cause') == i ? column('day') : NaN):(column('lost_min') + column('waited_min')) \
         with impulses lw 3 lc rgb colours[i % 8 + 1] title title_of(i)
unset label 1
unset label 2
unset key
set tmargin at screen 0.37
set bmargin at screen 70.0/height
set format x '%g'
set xlabel 'days' textcolor rgb ink
set yrange [0:most_away * 1.2]
set ylabel 'nodes away' textcolor rgb ink
plot data using 'day':'nodes_away' with fillsteps lc rgb '#CFDCE8', data using 'day':'nodes_away' with steps lw 1.5 lc rgb '#0072B2'
unset multiplot
