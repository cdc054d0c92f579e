# plots/workers.gp - workers of parameter servers. Columns of `data`: worker, band (0 passes, 1 pushes, 2 pulls), start, end, kind. A lane a
# worker: passes tall, below them pushes and pulls as thin strips.
width = 1200
height = int(lanes * 46) + 200
edge = 0.07
load style
set datafile columnheaders
unset grid
set border 1
set lmargin at screen 0.07
set rmargin at screen 0.975
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 108.0 / height
set xrange [0:span]
set yrange [lanes:0]
set xlabel 'time (' . unit . ')' textcolor rgb ink
set ylabel 'worker' textcolor rgb ink
set ytics scale 0
set ytics ()
do for [lane=0:lanes-1] {
    set ytics add (sprintf('%d', lane) lane + 0.32)
}
set key at screen 0.065, screen 1.0 - 62.0/height left top horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
kinds = "waits forward backward push pull"
colours = "#EDEDED #0072B2 #009E73 #E69F00 #CC79A7"
gap = 0.001 * span
top_of(y) = column('worker') + (column('band') == 0 ? 0.04 : column('band') == 1 ? 0.60 : 0.75)
bottom_of(y) = column('worker') + (column('band') == 0 ? 0.56 : column('band') == 1 ? 0.72 : 0.87)
end_of(y) = column('end') - column('start') > 6 * gap ? column('end') - gap : column('end')
is(i) = stringcolumn('kind') eq word(kinds, i) ? column('start') : NaN
plot for [i=1:5] data using (is(i)):(top_of(0)):(is(i)):(end_of(0)):(top_of(0)):(bottom_of(0)) with boxxyerror lc rgb word(colours, i) \
         title word(kinds, i)
