# plots/tornado.gp - columns of `data`: row, key, value, change of the step (percent), fits (1 or 0). A row a key: its best value to
# the left, its worst to the right, which is cut and marked where it is far worse.
width = 1200
height = int(rows * 34.0) + 160
edge = 0.03
load style
set datafile columnheaders
left = most > 0 ? most : least / 4
right = least < 8 * left ? least : 8 * left
set border 1
set lmargin at screen 0.235
set rmargin at screen 0.985
set tmargin at screen 1.0 - 78.0/height
set bmargin at screen 64.0/height
# Room for the words beside the longest bars.
span = left + right
set xrange [-left-0.6*span:right+0.6*span]
set yrange [rows:0]
set xtics auto
set format x '%+g %%'
set xlabel 'change of the step' textcolor rgb ink
set ytics scale 0
set grid noy x lc rgb '#E4E4E4'
set arrow 1 from 0, graph 0 to 0, graph 1 nohead lc rgb '#888888' lw 1 front
unset key
x(v) = v > right ? right : v
low(v) = v < 0 ? v : 0
high(v) = v < 0 ? 0 : x(v)
colour(v) = v < 0 ? coded('backward') : coded('tensor comm')
only(yes) = column('fits') == yes ? column('step_percent') : NaN
short(w) = strlen(w) > 26 ? w[1:25] . '…' : w
said(v) = (v > right ? '» ' : '') . short(stringcolumn('value')) . (abs(v) < 10 ? sprintf('  %+.1f %%', v) : sprintf('  %+.0f %%', v))
y = 'row'
plot data using (only(1)):(column(y)+0.5):(low(column('step_percent'))):(high(column('step_percent'))):(column(y)+0.14):(column(y)+0.86): \
         (colour(column('step_percent'))) with boxxyerror lc rgb variable, \
     data using (only(0)):(column(y)+0.5):(low(column('step_percent'))):(high(column('step_percent'))):(column(y)+0.18):(column(y)+0.82): \
         (colour(column('step_percent'))) with boxxyerror fs empty border lc rgb variable lw 2, \
     data using (column('step_percent') < 0 ? column('step_percent') : NaN):(column(y)+0.5):(said(column('step_percent'))) with labels right offset -0.6,0 \
         font ',10' textcolor rgb ink, \
     data using (column('step_percent') > 0 ? x(column('step_percent')) : NaN):(column(y)+0.5):(said(column('step_percent'))) with labels left offset 0.6,0 \
         font ',10' textcolor rgb ink, \
     data using (0):(column(y)+0.5):ytic(stringcolumn('key')) with points ps 0
