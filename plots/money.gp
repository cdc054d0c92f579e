# plots/money.gp - columns of `data`: series, name, GPUs, days, its interval (low, high), USD, its interval (low, high), fits (1 or 0),
# answer (1 or 0).
width = 1200
height = 700
edge = 0.085
load style
array colours[6] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9']
colour(i) = colours[i % 6 + 1]
shape(i) = int(i / 6) % 3 == 0 ? 7 : int(i / 6) % 3 == 1 ? 5 : 9
title_of(i) = series > 1 ? sprintf('%d  %s', i + 1, value(sprintf('name%d', i))) : value(sprintf('name%d', i))
set lmargin at screen 0.085
set rmargin at screen 0.975
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set logscale xy 10
set xrange [days_low/1.25:days_high*1.25]
set yrange [usd_low/1.25:usd_high*(series > 3 ? 8 : 2)]
set xtics ()
set ytics ()
do for [decade=-3:6] { do for [m in "1 2 3 5 7"] { set xtics add (sprintf('%g', m * 10.0**decade) m * 10.0**decade) } }
do for [decade=-1:12] { do for [m in "1 2 5"] {
    amount = m * 10.0**decade
    set ytics add (amount >= 1e9 ? sprintf('%g B', amount/1e9) : amount >= 1e6 ? sprintf('%g M', amount/1e6) : amount >= 1e3 ? sprintf('%g k', amount/1e3) : sprintf('%g', amount) amount)
} }
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set xlabel 'days' textcolor rgb ink
set ylabel 'USD' textcolor rgb ink
set key at screen 0.965, screen 1.0 - 92.0/height right top vertical reverse Left samplen 2 textcolor rgb ink
if (deadline > 0) {
    set arrow 1 from first deadline, graph 0 to first deadline, graph 1 nohead lw 2 dt 2 lc rgb '#888888'
    set label 3 sprintf('deadline %g days', deadline) at first deadline, graph 0.03 left offset 0.6,0 textcolor rgb '#555555'
}
if (budget > 0) { set arrow 2 from graph 0, first budget to graph 1, first budget nohead lw 2 dt 2 lc rgb '#888888' }
plot for [i=0:series-1] data skip 1 using ($1 == i && $6 > 0 ? $5 : NaN):8:($6-$5):($9-$8) with vectors nohead lw 9 lc rgb colour(i) notitle, \
     for [i=0:series-1] data skip 1 using ($1 == i ? $4 : NaN):7 with lines lw 2 lc rgb colour(i) title title_of(i), \
     for [i=0:series-1] data skip 1 using ($1 == i && $10 == 1 ? $4 : NaN):7 with points pt shape(i) ps 1.3 lc rgb colour(i) notitle, \
     for [i=0:series-1] data skip 1 using ($1 == i && $10 == 0 ? $4 : NaN):7 with points pt 6 ps 1.3 lw 2 lc rgb colour(i) notitle, \
     data skip 1 using ($11 == 1 ? $4 : NaN):7 with points pt 6 ps 3 lw 2 lc rgb ink notitle, \
     data skip 1 using ($11 == 1 && series > 1 ? $4 : NaN):7:(sprintf('%d', $1 + 1)) with labels offset 0,1.4 textcolor rgb ink notitle
