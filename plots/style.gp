# plots/style.gp - what all plots share: terminal, fonts, colours, a quiet frame. Loaded by the others after
# they have set `width` and `height`; `svg` and `picture` come from the driver.
set encoding utf8
if (svg) {
    set terminal svg size width,height dynamic font 'DejaVu Sans,14' background '#FFFFFF' noenhanced
} else {
    if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {
        set terminal pngcairo size width,height font 'DejaVu Sans,12' background '#FFFFFF' noenhanced
    } else {
        set terminal png size width,height font 'DejaVu Sans,12' noenhanced
    }
}
set output picture
set datafile separator comma
ink = '#222222'
faint = '#BBBBBB'
set border 3 lc rgb '#888888' lw 1
set tics nomirror out textcolor rgb ink
set grid ytics lc rgb '#E4E4E4' lw 1 lt 1
set style fill solid 1.0 noborder
