# plots/errors.gp - columns of `data`: row, source, run, step had it missed as that run did, alike (1: of this run's class). The band is the
# interval, the line the prediction.
width = 1200
height = int(rows * 19.0) + 206
edge = 0.03
load style
set datafile columnheaders
set border 1
set lmargin at screen 0.27
set rmargin at screen 0.975
set tmargin at screen 1.0 - 106.0/height
set bmargin at screen 84.0/height
set logscale x
left = least > step / 3 ? least / 1.04 : step / 3
right = most < step * 3 ? most * 1.04 : step * 3
set xrange [left:right]
set yrange [-0.7:rows-0.3]
set xtics ()
do for [percent in "-60 -50 -40 -30 -20 -10 0 10 20 30 50 75 100 150 200"] {
    set xtics add (sprintf('%.3g', step * (1 + percent / 100.0)) . "\n" . (percent + 0 == 0 ? 'predicted' : sprintf('%+d', percent + 0) . ' %%') step * (1 + percent / 100.0))
}
set xlabel 'step (' . unit . ')' textcolor rgb ink offset 0,-0.4
set ytics scale 0 font ',10'
set grid x lc rgb '#E4E4E4' lw 1 lt 1
set object 1 rectangle from low, graph 0 to high, graph 1 behind fc rgb '#DCE9F2' fs solid noborder
set arrow 1 from step, graph 0 to step, graph 1 nohead lw 2 lc rgb ink front
set key at screen 0.265, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1 maxrows 1 textcolor rgb ink
set style fill solid 1 noborder
in(v) = v < left ? left : v > right ? right : v
plot data using (column('alike') == 0 ? in(column('step')) : NaN):'row':ytic(2) with points pt 7 ps 0.7 lc rgb '#AAB4BE' title 'another kind of run', \
     data using (column('alike') == 1 ? in(column('step')) : NaN):'row' with points pt 7 ps 0.8 lc rgb '#0066A6' title 'a run of this kind (' . class_name . ')', \
     NaN with boxes lc rgb '#DCE9F2' title 'interval'
