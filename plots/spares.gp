# plots/spares.gp - columns of `data`: spare nodes, mean days, days that nine of ten campaigns keep.
width = 1200
height = 600
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.96
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set datafile columnheaders
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set ylabel 'days of the whole run' textcolor rgb ink
set xlabel 'spare nodes' textcolor rgb ink
set key at graph 0.98, graph 0.97 right top vertical reverse Left samplen 2 textcolor rgb ink
stats data using 3 name 'days' nooutput
# Without spares it may take many times as long: the scale is of ratios.
set logscale y 10
set yrange [ideal / 1.1:days_max * 1.2]
set ytics (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 10000)
set autoscale xfix
plot data using 'spares':'days_p90' with linespoints pt 6 ps 1.1 lw 2 dt 2 lc rgb '#D55E00' title 'nine of ten campaigns end by', \
     data using 'spares':'days' with linespoints pt 7 ps 1.1 lw 2 lc rgb '#0072B2' title 'mean', \
     ideal with lines lw 2 dt 3 lc rgb '#555555' title 'days of computing'
