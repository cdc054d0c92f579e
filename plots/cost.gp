# plots/cost.gp - columns of `data`: series, name, GPUs, money, days, their low and high (may be empty), answer (1 or 0).
width = 1200
height = 640
edge = 0.075
load style
array colours[6] = ['#0066A6', '#D55E00', '#009E73', '#B5508F', '#222222', '#80664F']
colour(i) = colours[i % 6 + 1]
title_of(i) = value(sprintf('name%d', i))
set lmargin at screen 0.075
set rmargin at screen 0.97
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
stats data skip 1 using 4 name 'usd' nooutput
stats data skip 1 using 5 name 'span' nooutput
set logscale xy 10
money_low = budget > 0 && budget < usd_min ? budget : usd_min
money_high = budget > usd_max ? budget : usd_max
pad = (money_high / money_low) ** 0.06 * 1.04
set xrange [money_low/pad:money_high*pad]
set xtics ()
set yrange [(deadline > 0 && deadline < span_min ? deadline : span_min)/1.5:(deadline > span_max ? deadline : span_max)*1.5]
set xlabel 'cost (' . money_unit . ')' textcolor rgb ink
set ylabel 'days' textcolor rgb ink
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set ytics ()
marks = money_high / money_low < 8 ? "1 1.2 1.5 2 2.5 3 4 5 6 8" : "1 2 3 5 7"
do for [decade=-6:6] {
    do for [m in "1 2 3 5 7"] { set ytics add (sprintf('%g', m * 10.0**decade) m * 10.0**decade) }
    do for [m in marks] { set xtics add (sprintf('%g', m * 10.0**decade) m * 10.0**decade) }
}
if (deadline > 0) {
    set arrow 1 from graph 0, first deadline to graph 1, first deadline nohead lw 2 dt 2 lc rgb '#888888'
    set label 3 sprintf('deadline %g days', deadline) at graph 0.985, first deadline right offset 0,0.6 textcolor rgb '#555555'
}
if (budget > 0) {
    set arrow 2 from first budget, graph 0 to first budget, graph 1 nohead lw 2 dt 2 lc rgb '#888888'
    set label 4 sprintf('budget %g', budget) at first budget, graph 0.03 left offset 0.6,0 textcolor rgb '#555555'
}
set key at graph 0.985, graph 0.975 right top vertical reverse Left samplen 2 textcolor rgb ink
set style fill transparent solid 0.13 noborder
# GPUs of every other doubling are told, so that names have room.
named(n) = abs(log(n)/log(4) - floor(log(n)/log(4) + 0.5)) < 1e-6
of(i, c) = column(1) == i ? column(c) : NaN
plot for [i=0:series-1] data skip 1 using (of(i, 4)):6:7 with filledcurves lc rgb colour(i) notitle, \
     for [i=0:series-1] data skip 1 using (of(i, 4)):5 with linespoints pt 7 ps 1.1 lw 2 lc rgb colour(i) title title_of(i), \
     for [i=0:series-1] data skip 1 using (named(column(3)) || column(8) == 1 ? of(i, 4) : NaN):5:(grouped(column(3))) with labels left offset 0.7,0.6 font ',10' \
         textcolor rgb colour(i) notitle, \
     data skip 1 using ($8 == 1 ? $4 : NaN):5 with points pt 6 ps 2.8 lw 2 lc rgb ink notitle
