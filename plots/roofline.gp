# plots/roofline.gp - columns of `data`: kernel, kind (product | attention), FLOPs a byte, TFLOP/s, share of
# compute, share of the bound (percent), number in the list (0: none).
width = 1200
height = 700
edge = 0.075
load style
set datafile columnheaders
set lmargin at screen 0.075
set rmargin at screen 0.97
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 70.0/height
set logscale xy 10
ridge = peak / bandwidth
left = (low < ridge ? low : ridge) / 3
right = (high > ridge ? high : ridge) * 3
# Below the roof, right, is room for the list.
bottom = least / 4.0
set xrange [left:right]
set yrange [bottom:peak*1.7]
set xlabel 'FLOPs for each byte moved' textcolor rgb ink
set ylabel 'TFLOP/s' textcolor rgb ink
set format x '%g'
set format y '%g'
set grid xtics ytics lc rgb '#E4E4E4' lw 1 lt 1
set xtics ()
set ytics ()
do for [decade=-3:7] { do for [m in "1 2 5"] {
    set xtics add (grouped(m * 10.0**decade) m * 10.0**decade)
    set ytics add (sprintf('%g', m * 10.0**decade) m * 10.0**decade)
} }
set label 3 sprintf('dense %s peak, %.0f TFLOP/s', precision, peak) at graph 0.985, first peak*1.12 right textcolor rgb '#555555'
set label 4 sprintf('memory, %.3g TB/s', bandwidth) at left*1.75, left*1.75*bandwidth/1.3 left textcolor rgb '#555555'
set arrow 1 from left, left*bandwidth to ridge, peak nohead lw 2 lc rgb '#888888'
set arrow 2 from ridge, peak to right, peak nohead lw 2 lc rgb '#888888'
set key at graph 0.02, graph 0.975 left top vertical reverse Left samplen 1 textcolor rgb ink
set style fill solid 1 border
size(s) = 1.9 + 0.9 * sqrt(s)
of(k) = stringcolumn('kind') eq k ? column('tflop_per_s') : NaN
height_of(n) = bottom * (peak * 1.7 / bottom) ** (0.035 + 0.047 * (listed - n))
plot data using 'flops_per_byte':(of('product')):(size(column('share_percent'))) with points pt 7 ps variable lc rgb '#0066A6' notitle, \
     data using 'flops_per_byte':(of('attention')):(size(column('share_percent'))) with points pt 7 ps variable lc rgb '#E38B00' notitle, \
     NaN with points pt 7 ps 2 lc rgb '#0066A6' title 'product', \
     NaN with points pt 7 ps 2 lc rgb '#E38B00' title 'attention', \
     data using (column('number') > 0 ? column('flops_per_byte') : NaN):'tflop_per_s':(sprintf('%d', column('number'))) with labels font ',9' \
         textcolor rgb '#FFFFFF' notitle, \
     data using (column('number') > 0 ? right * (left / right) ** 0.37 : NaN):(height_of(column('number'))): \
         (sprintf('%d  %s: %.1f %% of compute, at %.0f %% of its bound', column('number'), stringcolumn('kernel'), column('share_percent'), \
         column('bound_percent'))) with labels left font ',10' textcolor rgb ink notitle
