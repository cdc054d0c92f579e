# plots/interval.gp - columns of `data`: interval (s), goodput: exact, to first order, low and high of replicas (percent).
width = 1200
height = 640
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.96
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set datafile columnheaders
low = least - 0.12 * (most - least)
low = low < 0 ? 0 : low
top = most + 0.12 * (most - least)
top = top > 100 ? 100 : top
set yrange [low:top]
set logscale x 10
set autoscale xfix
set format x '%.0f'
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set ylabel 'goodput (%)' textcolor rgb ink
set xlabel 'time between checkpoints (s)' textcolor rgb ink
do for [i=0:marks-1] {
    at = value(sprintf('mark_at%d', i))
    set arrow 10+i from first at, graph 0 to first at, graph 0.36 - 0.07*i nohead lw 1.5 dt 2 lc rgb '#888888'
    set label 10+i value(sprintf('mark%d', i)) at first at, graph 0.34 - 0.07*i offset 0.8,0 left textcolor rgb ink front
}
set key at graph 0.98, graph 0.97 right top vertical reverse Left samplen 2 textcolor rgb ink
set style fill transparent solid 0.18 noborder
plot data using 'interval_s':'low_percent':'high_percent' with filledcurves lc rgb '#0072B2' title 'nine of ten campaigns', \
     data using 'interval_s':'exact_percent' with lines lw 2.5 lc rgb '#0072B2' title 'exact mean', \
     data using 'interval_s':(column('first_order_percent') > low ? column('first_order_percent') : NaN) with lines lw 2 dt 2 lc rgb '#D55E00' title 'first order'
